package engines

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
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
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &s3Server{url: urlOf(port), addr: address(port), handler: gofakes3.New(backend).Server()}
	return s, s.serve()
}

func (s *s3Server) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server != nil || s.done {
		return nil
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return err
	}
	s.server = &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	go func(server *http.Server) { _ = server.Serve(l) }(s.server) // ends with Close
	return nil
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
