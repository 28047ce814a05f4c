package enginetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/shared/local/engines"
)

// hostStarts is how long a host may take until it listens. Engines start later,
// when they are asked for.
const hostStarts = 20 * time.Second

// ask gets an engine's URL from the run's host, which it starts if there is
// none that answers.
func ask(ctx context.Context, n engines.Name) (string, error) {
	dir := thisRun().dir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for try := 1; ; try++ {
		if err := ensureHost(ctx, dir); err != nil {
			return "", err
		}
		u, err := request(ctx, dir, n)
		if err == nil {
			return u, nil
		}
		// A host that is just dying may still take a connection.
		var cut *neturl.Error
		if !errors.As(err, &cut) || try == 5 || ctx.Err() != nil {
			return "", fmt.Errorf("%w (the host's log is %s)", err, filepath.Join(dir, logName))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// ensureHost returns when a host listens.
func ensureHost(ctx context.Context, dir string) error {
	socket := filepath.Join(dir, socketName)
	if listens(socket) {
		return nil
	}
	unlock, err := engines.Lock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer unlock()
	if listens(socket) {
		return nil // another process was first
	}
	exited, err := startHost(dir)
	if err != nil {
		return fmt.Errorf("start the engine host: %w", err)
	}
	deadline := time.After(hostStarts)
	for !listens(socket) {
		select {
		case err := <-exited:
			log, _ := os.ReadFile(filepath.Join(dir, logName))
			return fmt.Errorf("the engine host ended: %v\n%s", err, log)
		case <-deadline:
			return fmt.Errorf("the engine host does not listen after %s", hostStarts)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func listens(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// startHost runs this test binary once more, as the host. It is detached: its
// output goes to a file, because go test waits for all who hold its own, and it
// has a session of its own, so that it outlives this process and a Ctrl-C.
func startHost(dir string) (exited <-chan error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(self)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), hostDir+"="+dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	end := make(chan error, 1)
	go func() { end <- cmd.Wait() }()
	return end, nil
}

// request asks the host. A start may include fetching the engine, so the
// answer has the time that the test has.
func request(ctx context.Context, dir string, n engines.Name) (string, error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(dir, socketName))
		},
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/"+string(n), nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSpace(string(body)))
	}
	return string(body), nil
}
