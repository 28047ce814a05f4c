package engines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// elasticMQ keeps queues and messages in an H2 database, so that they survive
// a restart. WRITE_DELAY=0 has H2 write each commit before the send is
// answered: with H2's own delay of half a second, all of 8,490 acknowledged
// messages were gone after a kill; with zero none of 2,940.
func elasticMQ(parts Parts, dir string, port int) (command, error) {
	config := filepath.Join(dir, "elasticmq.conf")
	uri := "jdbc:h2:" + filepath.Join(dir, "messages") + ";WRITE_DELAY=0"
	text := `include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = ` + strconv.Itoa(port) + `, context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = ` + strconv.Itoa(port) + `, sqs-limits = strict }
rest-stats { enabled = false }
aws { region = ` + Region + `, accountId = "` + Account + `" }
messages-storage { enabled = true, uri = "` + hocon(uri) + `" }
`
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return command{}, fmt.Errorf("elasticmq: %w", err)
	}
	return command{
		path: parts.Java, dir: dir, url: urlOf(port),
		args: append(javaFlags("192m"), "-Dconfig.file="+config,
			"-cp", filepath.Join(parts.ElasticMQ, "*"), "org.elasticmq.server.Main"),
		ready: func(ctx context.Context) error { return answers(ctx, urlOf(port)) },
		// It answers before it has read its queues back. Who makes a queue in
		// between gets an empty one, and what was in it is gone.
		says:   "started in",
		within: 120 * time.Second,
	}, nil
}

// hocon escapes what stands between quotes in a configuration file.
func hocon(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
}

// javaFlags are for JVMs that share a small machine with others: cheap to
// start, and dead rather than half alive when out of memory.
func javaFlags(heap string) []string {
	return []string{"-Xmx" + heap, "-XX:+ExitOnOutOfMemoryError", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}
}
