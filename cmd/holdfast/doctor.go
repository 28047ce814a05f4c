package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/obs"
)

// probeTime is how long a single check may take.
const probeTime = 10 * time.Second

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Needed says that a finding that is not OK makes the command fail.
	Needed bool `json:"needed"`
}

func newDoctor() *cobra.Command {
	var at connection
	var out output
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine and the endpoint need",
		Long: `Checks the tools of "holdfast local" and of building, the local port, the engines
in the cache, the credentials and the endpoint. What is marked "!" is missing,
"-" only matters for what its line says. Exit code 3 says that something is
missing: Java 17 where the endpoint is on this machine, credentials that would be
used, or an endpoint that was named (--endpoint, $HOLDFAST_ENDPOINT) and does not
answer.

Nobody is called but the endpoint and, if there are AWS credentials and they
would be used, AWS, to tell whose they are.`,
		Example: `  holdfast doctor
  holdfast doctor --endpoint https://api.example.com --profile prod --output json`,
		Args: takes(cobra.NoArgs),
		RunE: runs(func(ctx context.Context, c *cobra.Command, _ []string) error {
			if err := out.check(c); err != nil {
				return err
			}
			if _, err := client.ParseEndpoint(at.address()); err != nil {
				return misuse(c, "%w", err)
			}
			findings := examine(ctx, c, &at)
			return tellFindings(c, out.format, findings)
		}),
	}
	at.register(c)
	out.register(c, "table", "json")
	return c
}

// examine runs all checks, side by side.
func examine(ctx context.Context, c *cobra.Command, at *connection) []finding {
	checks := []func(context.Context) finding{}
	here := onThisMachine(at.address())
	for _, t := range doctorTools {
		t.needed = t.needed && here
		checks = append(checks, t.check)
	}
	checks = append(checks,
		func(context.Context) finding { return checkPort(at.address()) },
		func(context.Context) finding { return checkEngines() },
		func(ctx context.Context) finding { return checkCredentials(ctx, c, at) },
		func(ctx context.Context) finding { return checkEndpoint(ctx, c, at) },
	)
	findings := make([]finding, len(checks))
	var running sync.WaitGroup
	for i, check := range checks {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, probeTime)
			defer cancel()
			findings[i] = check(ctx)
		})
	}
	running.Wait()
	return findings
}

func tellFindings(c *cobra.Command, format string, findings []finding) error {
	var missing []string
	var pairs [][2]string
	for _, f := range findings {
		mark := "ok "
		switch {
		case !f.OK && f.Needed:
			mark = "!  "
			missing = append(missing, f.Check)
		case !f.OK:
			mark = "-  "
		}
		pairs = append(pairs, [2]string{mark + f.Check, client.Printable(f.Detail)})
	}
	var err error
	if format == "json" {
		err = writeJSON(c.OutOrStdout(), map[string]any{"healthy": len(missing) == 0, "findings": findings})
	} else {
		err = writePairs(c.OutOrStdout(), pairs)
	}
	if err == nil && len(missing) > 0 {
		err = &codedError{code: exitNotAsPromised, err: fmt.Errorf("not as it should be: %s", strings.Join(missing, ", "))}
	}
	return err
}

// tool is a program that something needs.
type tool struct {
	name, use string
	args      []string
	least     int // of the version's first number; 0: any
	needed    bool
}

var doctorTools = []tool{
	{name: "java", use: "runs the engines of holdfast local", args: []string{"-version"}, least: 17, needed: true},
	{name: "javac", use: "only for the first start of holdfast local", args: []string{"-version"}, least: 17},
	{name: "mvn", use: "only for the first start of holdfast local", args: []string{"-v"}},
	{name: "npm", use: "only for the first start of holdfast local", args: []string{"--version"}},
	{name: "go", use: "only for building", args: []string{"version"}},
	{name: "python3", use: "only for deploying with SAM", args: []string{"--version"}},
}

var (
	versionText = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)
	colours     = regexp.MustCompile("\x1b\\[[0-9;]*m") // Maven's
)

func (t tool) check(ctx context.Context) finding {
	f := finding{Check: t.name, Needed: t.needed}
	path, err := exec.LookPath(t.name)
	if err != nil {
		f.Detail = "not found; " + t.use
		return f
	}
	cmd := exec.CommandContext(ctx, path, t.args...)
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	if err != nil {
		f.Detail = fmt.Sprintf("%s does not run: %v; %s", path, err, t.use)
		return f
	}
	version := versionText.FindString(colours.ReplaceAllString(string(said), ""))
	first, _ := strconv.Atoi(strings.SplitN(version, ".", 2)[0])
	f.Detail = fmt.Sprintf("%s at %s", version, path)
	if f.OK = first >= t.least; !f.OK {
		f.Detail += fmt.Sprintf(", but it takes %d or later; %s", t.least, t.use)
	}
	return f
}

// checkPort looks whether holdfast local could serve at the endpoint.
func checkPort(endpoint string) finding {
	f := finding{Check: "port"}
	u, err := client.ParseEndpoint(endpoint)
	if err != nil || !onThisMachine(endpoint) {
		f.OK, f.Detail = true, "the endpoint is not on this machine"
		return f
	}
	address := net.JoinHostPort(u.Hostname(), portOf(u))
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		f.OK, f.Detail = true, address+" is in use; see the endpoint below"
		return f
	}
	if err != nil {
		f.Detail = fmt.Sprintf("holdfast local could not serve at %s: %v", address, err)
		return f
	}
	l.Close()
	f.OK, f.Detail = true, address+" is free for holdfast local"
	return f
}

// onThisMachine reports whether an endpoint is one that holdfast local could
// serve at.
func onThisMachine(endpoint string) bool {
	u, err := client.ParseEndpoint(endpoint)
	return err == nil && u.Scheme == "http" && client.IsLoopback(u.Hostname())
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "80"
}

// checkEngines lists what holdfast local need not fetch any more.
func checkEngines() finding {
	f := finding{Check: "engines"}
	dir := os.Getenv(cacheVariable)
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			f.Detail = fmt.Sprintf("no place for a cache: %v", err)
			return f
		}
		dir = filepath.Join(base, "holdfast", "engines")
	}
	found, err := filepath.Glob(filepath.Join(dir, "[a-z]*-*"))
	if err != nil || len(found) == 0 {
		f.Detail = "none in " + dir + "; the first start of holdfast local fetches about 100 MB"
		return f
	}
	var names []string
	for _, path := range found {
		names = append(names, filepath.Base(path))
	}
	f.OK, f.Detail = true, strings.Join(names, ", ")+" in "+dir
	return f
}

// checkCredentials tells who is asking. AWS is called only if its credentials
// would be sent.
func checkCredentials(ctx context.Context, c *cobra.Command, at *connection) finding {
	f := finding{Check: "credentials"}
	auth, err := at.authorizer(ctx, c, false)
	if err != nil {
		f.Detail, f.Needed = err.Error(), true
		return f
	}
	f.OK = true
	signing, signs := auth.(*client.Signing)
	switch {
	case auth == nil:
		f.Detail = "none are sent to " + at.address()
		return f
	case !signs:
		f.Detail = auth.Describe()
		return f
	}
	f.Detail = auth.Describe()
	cfg := aws.Config{Region: signing.Region, Credentials: signing.Credentials}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		f.OK, f.Needed = false, true
		f.Detail += fmt.Sprintf("; AWS does not say whose they are: %v", err)
		return f
	}
	f.Detail += "; they are those of " + aws.ToString(who.Arn)
	return f
}

// checkEndpoint asks the endpoint for its own description.
func checkEndpoint(ctx context.Context, c *cobra.Command, at *connection) finding {
	f := finding{Check: "endpoint", Needed: c.Flags().Changed("endpoint") || os.Getenv(endpointVariable) != ""}
	auth, err := at.authorizer(ctx, c, false)
	var api *client.Client
	if err == nil {
		api, err = client.New(client.Options{Endpoint: at.address(), Auth: auth, Agent: "holdfast/" + obs.Version()})
	}
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	begun := time.Now()
	if _, err := api.Do(ctx, client.Request{Method: http.MethodGet, Path: "/openapi.json"}); err != nil {
		f.Detail = err.Error()
		return f
	}
	f.OK, f.Detail = true, fmt.Sprintf("%s answers in %d ms", api.Endpoint(), time.Since(begun).Milliseconds())
	return f
}
