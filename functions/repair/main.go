// Command repair is the function that schedules call to prove the index against
// the table and to make good what it lacks.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
	"holdfast/shared/lambdahost/queues"
)

func main() {
	functions.Run("repair", queues.Open, func(app *lambdahost.App) error {
		repair, err := app.Repair()
		if err != nil {
			return err
		}
		lambda.Start(lambdahost.Repair(repair, app.Store().State()))
		return nil
	})
}
