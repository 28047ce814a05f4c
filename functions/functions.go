// Package functions is what every function does before it can serve: read the
// environment and build its parts. It runs once in the life of a process.
package functions

import (
	"cmp"
	"fmt"
	"os"

	"github.com/caarlos0/env/v11"

	"holdfast/shared/lambdahost"
	"holdfast/shared/obs"
)

// Run builds the parts from the environment and passes them to start, which
// does not return while all is well. An error ends the process: Lambda tells it
// in the function's log and begins anew. A function that uses queues says how
// they are opened.
func Run(function string, queues lambdahost.OpenQueues, start func(*lambdahost.App) error) {
	if err := run(function, queues, start); err != nil {
		fmt.Fprintf(os.Stderr, "function %s cannot start: %v\n", function, err)
		os.Exit(1)
	}
}

func run(function string, queues lambdahost.OpenQueues, start func(*lambdahost.App) error) error {
	c, err := env.ParseAs[lambdahost.Config]()
	if err != nil {
		return fmt.Errorf("reading the environment: %w", err)
	}
	level, err := obs.ParseLevel(c.LogLevel)
	if err != nil {
		return err
	}
	aws, err := awsConfig()
	if err != nil {
		return err
	}
	app, err := lambdahost.Build(c, lambdahost.Surroundings{
		AWS: aws, Queues: queues,
		Log: obs.NewLogger(os.Stdout, level).With("function", function),
		// CloudWatch reads metrics out of the log. The name that the deployment gave
		// the function tells stages of one account apart.
		Metrics: obs.NewMetrics(os.Stdout, "Holdfast", nil, obs.Dimension{Name: "Function", Value: cmp.Or(os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), function)}),
	})
	if err != nil {
		return err
	}
	return start(app)
}
