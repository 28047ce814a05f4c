package functions

import (
	"context"
	"errors"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// awsConfig is what Lambda tells a function about AWS: the region, and the
// credentials of its role. Lambda gives both in the environment, and starts
// another process before the credentials end.
//
// The SDK's own loader would look in files, in sign-on sessions and on the
// network too, and to have all that in the binary costs a good part of the time
// that a function takes to start.
func awsConfig() (aws.Config, error) {
	region := os.Getenv("AWS_REGION")
	if region == "" {
		return aws.Config{}, errors.New("AWS_REGION is not set")
	}
	return aws.Config{Region: region, Credentials: aws.CredentialsProviderFunc(roleCredentials)}, nil
}

func roleCredentials(context.Context) (aws.Credentials, error) {
	c := aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: os.Getenv("AWS_SESSION_TOKEN"), Source: "the environment of the function",
	}
	if !c.HasKeys() {
		return aws.Credentials{}, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
	}
	return c, nil
}
