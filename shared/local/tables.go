package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/store"
)

// ensureTables creates the tables that are not there and waits until each can
// be used. It answers with the ARN of the first table's stream.
func ensureTables(ctx context.Context, client *dynamodb.Client, schema []dynamodb.CreateTableInput) (stream string, err error) {
	for i := range schema {
		name := schema[i].TableName
		_, err := client.CreateTable(ctx, &schema[i])
		var there *types.ResourceInUseException
		if err != nil && !errors.As(err, &there) {
			return "", fmt.Errorf("create table %s: %w", *name, err)
		}
		described, err := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
			o.MinDelay, o.MaxDelay = 50*time.Millisecond, time.Second
		}).WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: name}, 30*time.Second)
		if err != nil {
			return "", fmt.Errorf("wait for table %s: %w", *name, err)
		}
		if i == 0 {
			stream = aws.ToString(described.Table.LatestStreamArn)
		}
		if there == nil {
			if _, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: name, TimeToLiveSpecification: &types.TimeToLiveSpecification{
				AttributeName: aws.String(store.TTLAttribute), Enabled: aws.Bool(true),
			}}); err != nil {
				return "", fmt.Errorf("time to live of table %s: %w", *name, err)
			}
		}
	}
	if stream == "" {
		return "", fmt.Errorf("table %s has no stream", *schema[0].TableName)
	}
	return stream, nil
}

// ttlTables are what the sweep goes over.
func ttlTables(schema []dynamodb.CreateTableInput) []ttlTable {
	tables := make([]ttlTable, len(schema))
	for i, s := range schema {
		tables[i] = ttlTable{Name: *s.TableName, Attribute: store.TTLAttribute}
		for _, k := range s.KeySchema {
			tables[i].Keys = append(tables[i].Keys, *k.AttributeName)
		}
	}
	return tables
}
