// Command indexer is the function that takes signals from the queue and brings
// documents to the index.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
)

func main() {
	functions.Run("indexer", queues.Open, func(app *lambdahost.App) error {
		indexer, err := app.Indexer()
		if err != nil {
			return err
		}
		lambda.Start(lambdahost.Queue(indexer))
		return nil
	})
}
