package engines

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	_ "modernc.org/sqlite" // the driver that reads dynoxide's file
)

// dynoxide keeps its tables and streams in one SQLite file. What it has
// acknowledged survives its being killed.
func dynoxide(parts Parts, dir string, port int) command {
	file := filepath.Join(dir, "tables.sqlite")
	return command{
		path: parts.Dynoxide, dir: dir, url: urlOf(port),
		args:   []string{"--host", "127.0.0.1", "--port", strconv.Itoa(port), "--db-path", file},
		ready:  func(ctx context.Context) error { return answers(ctx, urlOf(port)) },
		within: 30 * time.Second,
		tune:   func(ctx context.Context) error { return indexStreamRecords(ctx, file) },
	}
}

// streamIndexes keep writes to a table with a stream from slowing down with
// the number of its stream records, which dynoxide never drops: it looks for
// the last number of a table and of a shard with each write.
var streamIndexes = []string{
	`CREATE INDEX IF NOT EXISTS holdfast_table_sequence ON _stream_records(table_name, CAST(sequence_number AS INTEGER))`,
	`CREATE INDEX IF NOT EXISTS holdfast_shard_sequence ON _stream_records(table_name, shard_id, CAST(sequence_number AS INTEGER))`,
}

func indexStreamRecords(ctx context.Context, file string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?mode=rw&_pragma=busy_timeout(10000)")
	if err != nil {
		return fmt.Errorf("open dynoxide's file: %w", err)
	}
	defer db.Close()
	for _, statement := range streamIndexes {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("index dynoxide's stream records: %w", err)
		}
	}
	return nil
}

// answers reports whether something speaks HTTP at url; what it says does not
// matter.
func answers(ctx context.Context, url string) error {
	_, err := get(ctx, url)
	return err
}

// get asks once, within a second, and answers with the status and no body.
func get(ctx context.Context, url string) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}
