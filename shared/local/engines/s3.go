package engines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3afero"
	"github.com/spf13/afero"
)

// s3Server is gofakes3 in this process, its buckets as folders on disk.
type s3Server struct {
	url     string
	handler http.Handler
	addr    string

	mu     sync.Mutex
	server *http.Server // nil while halted
	done   bool
}

func startS3(dir string) (*s3Server, error) {
	backend, err := s3afero.MultiBucket(afero.NewBasePathFs(afero.NewOsFs(), dir))
	if err != nil {
		return nil, fmt.Errorf("open buckets: %w", err)
	}
	handler := gofakes3.New(backend).Server()
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &s3Server{url: urlOf(port), addr: address(port), handler: handler}
		if err = s.serve(); err == nil {
			return s, nil
		}
		if try == 3 || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
	}
}

func (s *s3Server) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil || s.done {
		return nil
	}
	l, err := listenSoon(s.addr)
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	go func(server *http.Server) { _ = server.Serve(l) }(s.server) // ends with Close
	return nil
}

// listenSoon listens at an address that was free or ours a moment ago. A process
// that is just being started, between fork and exec, still holds a copy of a
// listener that was closed here, and with it the port.
func listenSoon(addr string) (net.Listener, error) {
	const patience, pause = 2 * time.Second, 10 * time.Millisecond
	for deadline := time.Now().Add(patience); ; time.Sleep(pause) {
		l, err := net.Listen("tcp", addr)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return l, err
		}
	}
}

func (s *s3Server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := Ready
	switch {
	case s.done:
		state = Stopped
	case s.server == nil:
		state = Down
	}
	return Status{Name: S3, State: state, URL: s.url}
}

func (s *s3Server) await(context.Context) error {
	if state := s.status().State; state != Ready {
		return fmt.Errorf("%s is %s", S3, state)
	}
	return nil
}

// kill cuts every connection. There is no process to end.
func (s *s3Server) kill(stayDown bool) error {
	s.close()
	if stayDown {
		return nil
	}
	return s.serve()
}

func (s *s3Server) resume() { _ = s.serve() } // a port that was taken shows in status

func (s *s3Server) stop(time.Duration) {
	s.close()
	s.mu.Lock()
	s.done = true
	s.mu.Unlock()
}

func (s *s3Server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil {
		_ = s.server.Close() // the listener is closed, whatever it says
		s.server = nil
	}
}
