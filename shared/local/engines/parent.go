package engines

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// ParentIsGo reports whether the go command runs this program: `go run`, or
// `go test` for a test binary. Its process id is that of the parent then.
func ParentIsGo() bool {
	parent := os.Getppid()
	if runtime.GOOS == "linux" {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", parent))
		return err == nil && strings.TrimSpace(string(name)) == "go"
	}
	name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(parent)).Output()
	return err == nil && filepath.Base(strings.TrimSpace(string(name))) == "go"
}
