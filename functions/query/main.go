// Command query is the function behind /query.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
	"holdfast/shared/where"

	_ "time/tzdata" // for aggregations by the calendar of a zone: the runtime has no such files
)

func main() {
	functions.Run("query", queues.Open, func(app *lambdahost.App) error {
		handler, err := app.Query(&where.Compiler{})
		if err != nil {
			return err
		}
		lambda.Start(lambdahost.Gateway(handler))
		return nil
	})
}
