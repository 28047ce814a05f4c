package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"holdfast/shared/local"
	"holdfast/shared/local/chaos"
	"holdfast/shared/local/engines"
)

// stackProcess is the hidden command that is the stack of a chaos run.
const stackProcess = "chaos-stack"

// breaking are the flags of the command.
type breaking struct {
	output
	documents  int
	duration   time.Duration
	kills      int
	rate       float64
	seed       uint64
	writers    int
	dir        string
	within     time.Duration
	visibility time.Duration
	repair     time.Duration
	heap       string
}

func newChaos() *cobra.Command {
	var b breaking
	c := &cobra.Command{
		Use:   "chaos [FILE]",
		Short: "Break a stack of its own while it imports, and check that nothing is lost",
		Long: `Starts a stack of its own, on engines of its own, and imports documents into it,
made ones or those of a file as import reads it. Several clients write at the same
time, change and delete some of the documents again, some under the condition of a
version, and keep a record of every answer.

Meanwhile OpenSearch, ElasticMQ, dynoxide and the stack itself (gateway, functions
and pollers), one by one and all at once, are killed with SIGKILL and come back
some seconds later; and a share of the requests between the functions and the
engines is cut off before or after it was carried out, delayed, carried out when
its client is gone, or answered 400, 429 or 503, as engines do under load.

Then the faults stop. The command waits until index and table agree and repair has
proven it, has everything compared, and checks by itself that every acknowledged
write is in the table or was followed by a later one, that nothing happened that
was refused, and that a query finds exactly what the table holds.

A seed repeats the choice of documents, of what is killed when, and of faults; how
they meet is never the same twice.

Exit codes:
    0  everything is as promised
    1  it is not, or the run could not be made; what it wrote is kept
    2  the command line was not understood
  130  interrupted`,
		Example: `  holdfast chaos                                     # 20,000 documents, 12 kills, two minutes of import
  holdfast chaos --documents 1500 --duration 25s --kills 4
  holdfast chaos movies.ndjson.gz --faults 0.2 --kills 0   # a real data set, one request in five fails
  holdfast chaos --duration 1h --kills 300 --seed 7 --dir /tmp/chaos --output json`,
		Args: takes(cobra.MaximumNArgs(1)),
		RunE: runs(func(ctx context.Context, c *cobra.Command, args []string) error { return b.run(ctx, c, args) }),
	}
	b.output.register(c, "text", "json")
	f := c.Flags()
	f.IntVar(&b.documents, "documents", 20_000, "how many documents are imported; of a file all of them, unless this is given")
	f.DurationVar(&b.duration, "duration", 2*time.Minute, "over how long documents and kills are spread")
	f.IntVar(&b.kills, "kills", 12, "how often something is killed; one of five is everything at once")
	f.Float64Var(&b.rate, "faults", 0.05, "share of the requests to DynamoDB that fail, from 0 to 0.3; of those to queue and index, which are fewer, twice as many")
	f.Uint64Var(&b.seed, "seed", 0, "what chance goes by (default another one each time)")
	f.IntVar(&b.writers, "writers", chaos.DefaultWriters, "clients that write at the same time")
	f.StringVar(&b.dir, "dir", "", "empty directory for data and logs, kept in the end (default a temporary one, kept only when something is wrong)")
	f.DurationVar(&b.within, "within", chaos.DefaultWithin, "how long table and index may take to agree and to be proven and compared")
	f.DurationVar(&b.visibility, "visibility", 0, "how long the queue hides a message that somebody died with (default six times what the indexer may take, as AWS asks for)")
	f.DurationVar(&b.repair, "repair-every", chaos.DefaultRepairEvery, "how often repair proves the index against the table")
	f.StringVar(&b.heap, "opensearch-heap", "512m", "memory of OpenSearch, as Java's -Xmx takes it")
	return c
}

func (b *breaking) check(c *cobra.Command) error {
	if err := b.output.check(c); err != nil {
		return err
	}
	switch {
	case b.documents < 1:
		return misuse(c, "--documents is at least 1")
	case b.duration < time.Second || b.within < time.Second || b.repair < time.Second:
		return misuse(c, "--duration, --within and --repair-every are at least 1s")
	case b.kills < 0:
		return misuse(c, "--kills is not negative")
	case b.visibility != 0 && b.visibility < local.ShortestVisibility:
		return misuse(c, "--visibility is at least %s, which the indexer may take", local.ShortestVisibility)
	case !(b.rate >= 0 && b.rate <= 0.3):
		return misuse(c, "--faults is a share from 0 to 0.3")
	case b.writers < 1 || b.writers > mostConcurrency:
		return misuse(c, "--writers is from 1 to %d", mostConcurrency)
	}
	if b.dir != "" {
		if there, err := os.ReadDir(b.dir); err == nil && len(there) > 0 {
			return misuse(c, "--dir %s is not empty; a run needs a directory of its own", b.dir)
		}
	}
	return nil
}

func (b *breaking) run(ctx context.Context, c *cobra.Command, args []string) error {
	if err := b.check(c); err != nil {
		return err
	}
	if !c.Flags().Changed("seed") {
		b.seed = rand.Uint64N(1_000_000)
	}
	source, err := awaiting(ctx, func() (chaos.Source, error) { return b.source(c, args) })
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := b.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "holdfast-chaos-"); err != nil {
			return err
		}
	}
	bar := newChaosBar(c.ErrOrStderr())
	r, err := chaos.Run(ctx, chaos.Options{
		Dir: dir, Cache: engines.Cache{Dir: os.Getenv(cacheVariable)}, Heap: b.heap,
		Command:   func() *exec.Cmd { return exec.Command(self, stackProcess) },
		Documents: source, Duration: b.duration, Kills: b.kills, Rate: b.rate, Seed: b.seed, Writers: b.writers,
		Within: b.within, RepairEvery: b.repair, Visibility: b.visibility, Say: bar.say, Tell: bar.at,
	})
	bar.end()
	if b.dir == "" && (err == nil && r.Clean || errors.Is(err, context.Canceled)) {
		err = errors.Join(err, os.RemoveAll(dir))
	} else {
		note(c, "holdfast: data and logs are in %s", dir)
	}
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return failed(explain(fmt.Errorf("%w (seed %d)", err, b.seed)))
	}
	return b.report(c, r)
}

// source is what is imported.
func (b *breaking) source(c *cobra.Command, args []string) (chaos.Source, error) {
	if len(args) == 0 {
		return chaos.Made(b.documents, b.seed), nil
	}
	in, err := openInput(args[0], c.InOrStdin(), position{}, false)
	if err != nil {
		return nil, err
	}
	defer in.close()
	most := 0
	if c.Flags().Changed("documents") {
		most = b.documents
	}
	source, err := chaos.Read(func() ([]byte, error) {
		r, err := in.next()
		return r.text, err
	}, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(args[0]), err)
	}
	return source, nil
}

// newStackProcess is the command that a chaos run starts and kills.
func newStackProcess() *cobra.Command {
	return &cobra.Command{
		Use: stackProcess, Short: "The stack of a chaos run, which starts and kills it", Hidden: true, Args: takes(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := chaos.Serve(c.Context(), c.InOrStdin(), c.OutOrStdout()); err != nil {
				return failed(err)
			}
			return nil
		},
	}
}

// chaosBar tells how far a run has come: a bar on a terminal, elsewhere a line
// now and then.
type chaosBar struct {
	tell  func(line string)
	bar   *progressbar.ProgressBar // nil: lines
	spoke time.Time
}

func newChaosBar(w io.Writer) *chaosBar {
	b := &chaosBar{tell: teller(w), spoke: time.Now()}
	if isTerminal(w) {
		b.bar = progressbar.NewOptions(1, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(20),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	return b
}

// say tells what goes on, above the bar.
func (b *chaosBar) say(line string) {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
	b.tell(line)
}

func (b *chaosBar) at(p chaos.Progress) {
	text := fmt.Sprintf("%s: %d of %d documents, %d writes, %d of %d kills, %d faults", p.Doing, p.Documents, p.Of, p.Writes, p.Kills, p.OfKills, p.Faults)
	if p.Differing > 0 {
		text += fmt.Sprintf(", %d differ", p.Differing)
	}
	if b.bar != nil {
		b.bar.ChangeMax(p.Of)
		b.bar.Describe(text)
		_ = b.bar.Set(min(p.Documents, p.Of)) // a bar that cannot be drawn is no reason to stop
		return
	}
	if time.Since(b.spoke) >= speakEvery {
		b.spoke = time.Now()
		b.tell(text)
	}
}

func (b *chaosBar) end() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}
