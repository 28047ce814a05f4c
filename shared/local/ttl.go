package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// ttlTable is a table whose items end by an attribute.
type ttlTable struct {
	Name      string
	Keys      []string // the names of its key attributes, partition key first
	Attribute string   // seconds since 1970
}

// tableAPI is what the sweep needs of DynamoDB.
type tableAPI interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

// ttlSweep removes expired items, which the engine never does by itself. It
// remembers them, so that their stream records can say who removed them.
type ttlSweep struct {
	tables tableAPI
	of     []ttlTable
	swept  *sweptItems
	now    func() time.Time
}

// run is one sweep over all tables.
func (s *ttlSweep) run(ctx context.Context) error {
	var errs []error
	for _, t := range s.of {
		if err := s.sweep(ctx, t); err != nil {
			errs = append(errs, fmt.Errorf("table %s: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (s *ttlSweep) sweep(ctx context.Context, t ttlTable) error {
	now := map[string]types.AttributeValue{":now": &types.AttributeValueMemberN{Value: strconv.FormatInt(s.now().Unix(), 10)}}
	names := map[string]string{"#ttl": t.Attribute}
	projection := "#ttl"
	for i, k := range t.Keys {
		name := "#k" + strconv.Itoa(i)
		names[name] = k
		projection += ", " + name
	}
	var from map[string]types.AttributeValue
	for {
		page, err := s.tables.Scan(ctx, &dynamodb.ScanInput{
			TableName: &t.Name, ExclusiveStartKey: from, ProjectionExpression: &projection,
			FilterExpression: aws.String("#ttl < :now"), ExpressionAttributeNames: names, ExpressionAttributeValues: now,
		})
		if err != nil {
			return fmt.Errorf("look for expired items: %w", err)
		}
		if len(page.Items) > 0 {
			if err := s.swept.add(t, page.Items, s.now()); err != nil {
				return err // without the note the removals would look like somebody else's
			}
		}
		for _, item := range page.Items {
			key := map[string]types.AttributeValue{}
			for _, k := range t.Keys {
				key[k] = item[k]
			}
			_, err := s.tables.DeleteItem(ctx, &dynamodb.DeleteItemInput{
				TableName: &t.Name, Key: key,
				// It may have been written anew since it was found.
				ConditionExpression: aws.String("#ttl < :now"), ExpressionAttributeNames: map[string]string{"#ttl": t.Attribute}, ExpressionAttributeValues: now,
			})
			var changed *types.ConditionalCheckFailedException
			if err != nil && !errors.As(err, &changed) {
				return fmt.Errorf("remove an expired item: %w", err)
			}
		}
		if from = page.LastEvaluatedKey; from == nil {
			return nil
		}
	}
}

// sweptItems are the items that the sweep removed lately, in a file, because
// their stream records may be read by a later process.
type sweptItems struct {
	file string
	mu   sync.Mutex
	kept map[string]int64 // item with its ttl → when it was removed, in seconds since 1970
}

// sweptLife is how long a removal is remembered: as long as AWS keeps stream
// records.
const sweptLife = 24 * time.Hour

func openSweptItems(file string) (*sweptItems, error) {
	s := &sweptItems{file: file, kept: map[string]int64{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("swept items: %w", err)
	}
	if err := json.Unmarshal(text, &s.kept); err != nil {
		return nil, fmt.Errorf("swept items in %s: %w", file, err)
	}
	return s, nil
}

func (s *sweptItems) add(t ttlTable, items []map[string]types.AttributeValue, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for item, at := range s.kept {
		if now.Sub(time.Unix(at, 0)) > sweptLife {
			delete(s.kept, item)
		}
	}
	for _, item := range items {
		s.kept[sweptName(t, func(name string) string {
			switch v := item[name].(type) {
			case *types.AttributeValueMemberS:
				return v.Value
			case *types.AttributeValueMemberN:
				return v.Value
			}
			return ""
		})] = now.Unix()
	}
	text, err := json.Marshal(s.kept)
	if err != nil {
		return err
	}
	return writeFile(s.file, text)
}

// made reports whether the sweep made the removal that a record of the table's
// stream tells of.
func (s *sweptItems) made(t ttlTable, r streamtypes.Record) bool {
	name := sweptName(t, func(name string) string {
		switch v := r.Dynamodb.OldImage[name].(type) {
		case *streamtypes.AttributeValueMemberS:
			return v.Value
		case *streamtypes.AttributeValueMemberN:
			return v.Value
		}
		return ""
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.kept[name]
	return ok
}

// sweptName is an item and the ttl it had: written anew it is another.
func sweptName(t ttlTable, value func(attribute string) string) string {
	name := t.Name + " " + value(t.Attribute)
	for _, k := range t.Keys {
		name += " " + strconv.Quote(value(k))
	}
	return name
}
