// Command documents is the function behind every route but /query and
// /collections: documents by id and by prefix, the change feed, and ordered GUIDs.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"holdfast/functions"
	"holdfast/shared/lambdahost"
)

func main() {
	functions.Run("documents", nil, func(app *lambdahost.App) error {
		lambda.Start(lambdahost.Gateway(app.Documents()))
		return nil
	})
}
