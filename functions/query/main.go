// Command query is the function behind /query.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
)

func main() {
	functions.Run("query", func(app *lambdahost.App) error {
		handler, err := app.Query()
		if err != nil {
			return err
		}
		lambda.Start(lambdahost.Gateway(handler))
		return nil
	})
}
