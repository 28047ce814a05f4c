// Command admin is the function behind /collections: what is declared of
// collections.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
)

func main() {
	functions.Run("admin", func(app *lambdahost.App) error {
		lambda.Start(lambdahost.Gateway(app.Admin()))
		return nil
	})
}
