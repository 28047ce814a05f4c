// Command sdk is a function that reads one item and does nothing else: what any
// function in Go costs that uses DynamoDB through the AWS SDK.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func main() {
	db := dynamodb.NewFromConfig(aws.Config{Region: os.Getenv("AWS_REGION")})
	lambda.Start(func(ctx context.Context, key string) error {
		_, err := db.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: aws.String("items"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: key}},
		})
		return err
	})
}
