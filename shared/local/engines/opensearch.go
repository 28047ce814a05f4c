package engines

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// openSearch is one node. Indexes are never made by writing to them, as a
// deployment forbids it too, and have no replicas, which a single node could
// not place. Requests are limited to 10 MiB, as on small domains.
func openSearch(parts Parts, dir string, port int, heap string) (command, error) {
	home, temp := filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	for _, d := range []string{home, temp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return command{}, fmt.Errorf("opensearch: %w", err)
		}
	}
	args := append(javaFlags(heap), "-Xms"+heap, "-XX:MaxDirectMemorySize=256m", "-Djava.io.tmpdir="+temp,
		"-Dlog4j2.level=INFO", "-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true",
		"-cp", filepath.Join(parts.OpenSearch, "classes")+":"+filepath.Join(parts.OpenSearch, "lib", "*"),
		"OsLauncher", home,
		"http.port="+strconv.Itoa(port), "transport.port=0",
		"action.auto_create_index=false",
		"cluster.default_number_of_replicas=0",
		"http.max_content_length=10mb")
	return command{
		path: parts.Java, args: args, dir: dir, url: urlOf(port),
		ready:  func(ctx context.Context) error { return nodeIsReady(ctx, urlOf(port)) },
		within: 120 * time.Second,
	}, nil
}

// nodeIsReady asks for a cluster whose primary shards are all in place.
func nodeIsReady(ctx context.Context, url string) error {
	status, err := get(ctx, url+"/_cluster/health?wait_for_status=yellow&timeout=500ms")
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("its health is answered with status %d", status)
	}
	return nil
}
