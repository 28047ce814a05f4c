package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/shared/local"
	"holdfast/shared/local/engines"
)

// config is what the process of a stack is told on its standard input.
type config struct {
	Dir         string
	Engines     map[engines.Name]string // where they are
	Reach       map[engines.Name]string // where the functions find them
	RepairEvery time.Duration
	Visibility  time.Duration
}

// readyMark begins the line that says where a stack serves.
const readyMark = "READY "

// Serve is the process of a stack: it reads on in what it has to do, says on out
// where it serves, and serves until in ends, which it does when the process at
// its other side does, however that ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var c config
	told := json.NewDecoder(in)
	if err := told.Decode(&c); err != nil {
		return fmt.Errorf("read what to serve: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	stack, err := local.Start(ctx, local.Options{
		Address: "127.0.0.1:0", DataDir: c.Dir, Engines: c.Engines, Reach: c.Reach,
		RepairEvery: c.RepairEvery, Visibility: c.Visibility,
	})
	if err != nil {
		return err
	}
	defer stack.Stop()
	if _, err := fmt.Fprintf(out, "%s%s\n", readyMark, stack.URL()); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-stack.Failed():
		return errors.Join(errors.New("the stack failed"), err)
	}
}
