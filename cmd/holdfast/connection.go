package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/internal/client"
	"holdfast/shared/local"
	"holdfast/shared/obs"
)

const (
	endpointVariable = "HOLDFAST_ENDPOINT"
	tokenVariable    = "HOLDFAST_TOKEN"
)

// shortPatience is how long commands that somebody waits for try again.
const shortPatience = 20 * time.Second

// connection are the flags that say where a Holdfast is and who is asking.
type connection struct {
	endpoint  string
	profile   string
	region    string
	tokenFile string
}

func (o *connection) register(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.endpoint, "endpoint", "", "URL of the API (default $"+endpointVariable+" or http://"+local.DefaultAddress+")")
	f.StringVar(&o.profile, "profile", "", "sign requests with this AWS profile")
	f.StringVar(&o.region, "region", "", "AWS region to sign requests for (default: the endpoint's)")
	f.StringVar(&o.tokenFile, "token-file", "", "file with a bearer token, read again when it is needed (default: the token in $"+tokenVariable+")")
}

// address is the endpoint that was asked for.
func (o *connection) address() string {
	if o.endpoint != "" {
		return o.endpoint
	}
	if e := os.Getenv(endpointVariable); e != "" {
		return e
	}
	return "http://" + local.DefaultAddress
}

// open makes a client. persistent is for long work that outlives restarts of
// what it talks to.
func (o *connection) open(ctx context.Context, c *cobra.Command, patience time.Duration, persistent bool) (*client.Client, error) {
	auth, err := o.authorizer(ctx, c, true)
	if err != nil {
		return nil, err
	}
	return client.New(client.Options{
		Endpoint: o.address(), Auth: auth, Agent: "holdfast/" + obs.Version(),
		Patience: patience, Persistent: persistent, Sleep: interruptible(ctx),
		Notice: nowAndThen(func(line string) { note(c, "holdfast: %s", line) }),
	})
}

// reach makes a client for long work, and finds out at once whether anybody is
// there.
func (o *connection) reach(ctx context.Context, c *cobra.Command, patience time.Duration, persistent bool) (*client.Client, error) {
	api, err := o.open(ctx, c, patience, persistent)
	if err != nil {
		return nil, err
	}
	return api, api.Reach(ctx)
}

// nowAndThen passes on one line of many that come at the same time.
func nowAndThen(say func(string)) func(string) {
	var mu sync.Mutex
	var last time.Time
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= speakEvery {
			last = now
			say(line)
		}
	}
}

// interruptible is a sleep that also ends with stop, so that requests which are
// let end after an interruption are not tried again.
func interruptible(stop context.Context) func(context.Context, time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-stop.Done():
			return stop.Err()
		}
	}
}

// authorizer finds out who is asking; nil is nobody.
func (o *connection) authorizer(ctx context.Context, c *cobra.Command, metadata bool) (client.Authorizer, error) {
	for _, credential := range []string{"profile", "region"} {
		if err := exclude(c, [2]string{credential, "token-file"}); err != nil {
			return nil, err
		}
	}
	u, err := client.ParseEndpoint(o.address())
	if err != nil {
		return nil, misuse(c, "%w", err)
	}
	signed := o.profile != "" || o.region != ""
	switch {
	case o.tokenFile != "":
		return wrapAuth(client.NewBearerFile(o.tokenFile))
	case !signed && strings.TrimSpace(os.Getenv(tokenVariable)) != "":
		return wrapAuth(client.NewBearer(os.Getenv(tokenVariable)))
	case signed || u.Scheme == "https":
		return wrapAuth(client.NewSigning(ctx, o.address(), o.profile, o.region, metadata))
	}
	return nil, nil
}

// wrapAuth keeps a nil pointer from becoming an Authorizer.
func wrapAuth[A client.Authorizer](a A, err error) (client.Authorizer, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}
