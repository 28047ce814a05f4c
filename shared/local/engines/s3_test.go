package engines

import (
	"net"
	"testing"
	"time"
)

func TestS3WaitsForAPortThatIsBeingLetGo(t *testing.T) {
	held, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Close() })
	l, err := listenSoon(held.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
