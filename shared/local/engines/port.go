package engines

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below those that systems give to outgoing connections
// (Linux from 32768, macOS from 49152): an engine that is started again must
// find its port free, and nothing else would keep it so.
const firstPort, lastPort = 20000, 32000

// freePort is a port of 127.0.0.1 that nobody listens on.
func freePort() (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if portIsFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func portIsFree(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func urlOf(port int) string { return "http://" + address(port) }
