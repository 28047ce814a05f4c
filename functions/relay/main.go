// Command relay is the function that reads the documents table's stream and
// puts signals on the queue.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
)

func main() {
	functions.Run("relay", queues.Open, func(app *lambdahost.App) error {
		relay, err := app.Relay()
		if err != nil {
			return err
		}
		lambda.Start(lambdahost.Stream(relay))
		return nil
	})
}
