// Command engines starts the engines that stand in for AWS, prints their URLs as
// one JSON object, and runs until its standard input ends.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"holdfast/shared/local/engines"
)

func main() {
	engines.Guard()
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "engines:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	set, err := engines.NewSet(engines.Options{
		Cache: engines.Cache{Dir: os.Getenv("HOLDFAST_CACHE")}, Dir: dir,
		Say: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		return err
	}
	defer set.Stop()
	if err := set.Start(ctx, engines.DynamoDB, engines.SQS, engines.OpenSearch); err != nil {
		return err
	}
	urls := map[string]string{
		"dynamodb": set.URL(engines.DynamoDB), "sqs": set.URL(engines.SQS), "opensearch": set.URL(engines.OpenSearch),
	}
	if err := json.NewEncoder(os.Stdout).Encode(urls); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
