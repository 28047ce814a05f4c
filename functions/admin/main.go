// Command admin is the function behind what operators ask: /collections,
// /status, /quarantine, /jobs and /dead-letters.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
)

func main() {
	functions.Run("admin", queues.Open, func(app *lambdahost.App) error {
		handler, err := app.Admin()
		if err != nil {
			return err
		}
		lambda.Start(lambdahost.Gateway(handler))
		return nil
	})
}
