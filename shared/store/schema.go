package store

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// changesIndex is the index of the change feed.
const changesIndex = "changes"

// TTLAttribute is the attribute by which both tables remove items for good, in
// seconds since 1970. Time to live is switched on by a call of its own, after a
// table was made.
const TTLAttribute = attrTTL

// Schema is how the two tables are made where no template does it: on the local
// stack and in tests.
func Schema(documents, state string) []dynamodb.CreateTableInput {
	keys := func(pk, sk string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: aws.String(pk), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(sk), KeyType: types.KeyTypeRange},
		}
	}
	attribute := func(name string, t types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: t}
	}
	return []dynamodb.CreateTableInput{{
		TableName:   aws.String(documents),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keys(attrPK, attrSK),
		AttributeDefinitions: []types.AttributeDefinition{
			attribute(attrPK, types.ScalarAttributeTypeS), attribute(attrSK, types.ScalarAttributeTypeS),
			attribute(attrBucket, types.ScalarAttributeTypeN), attribute(attrVersion, types.ScalarAttributeTypeN),
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(changesIndex),
			KeySchema: keys(attrBucket, attrVersion),
			Projection: &types.Projection{
				ProjectionType:   types.ProjectionTypeInclude,
				NonKeyAttributes: []string{attrCollection, attrDeleted},
			},
		}},
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}, {
		TableName:   aws.String(state),
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keys(attrPK, attrSK),
		AttributeDefinitions: []types.AttributeDefinition{
			attribute(attrPK, types.ScalarAttributeTypeS), attribute(attrSK, types.ScalarAttributeTypeS),
		},
	}}
}
