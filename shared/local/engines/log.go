package engines

import (
	"os"
	"path/filepath"
)

// logLimit is where a log is put aside, at the next start, as <name>.1.
const logLimit = 16 << 20

// OpenLog opens a log to write on at its end. One that has grown beyond 16 MiB
// is put aside first, in place of the one put aside before.
func OpenLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}
