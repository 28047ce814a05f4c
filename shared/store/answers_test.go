package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"pgregory.net/rapid"
)

// answering is a client of a table that gives one answer, read by the SDK or by
// the store.
func answering(status int, body string, header http.Header, own bool) *dynamodb.Client {
	o := dynamodb.Options{
		Region: "r", BaseEndpoint: aws.String("http://localhost:1"), Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})},
	}
	if own {
		o.APIOptions = []func(*middleware.Stack) error{readItems}
	}
	return dynamodb.New(o)
}

// asked is what each operation answers, without what is about the request.
func asked(ctx context.Context, client *dynamodb.Client) map[string]any {
	get, getErr := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")})
	many, manyErr := client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"t": {Keys: []map[string]types.AttributeValue{itemKey("a/b")}}}})
	query, queryErr := client.Query(ctx, &dynamodb.QueryInput{TableName: aws.String("t")})
	scan, scanErr := client.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String("t")})
	got := map[string]any{"errors": []bool{getErr != nil, manyErr != nil, queryErr != nil, scanErr != nil}}
	if getErr == nil {
		got["get"] = get.Item
	}
	if manyErr == nil {
		got["many"], got["left"] = many.Responses, many.UnprocessedKeys
	}
	if queryErr == nil {
		got["query"] = []any{query.Items, query.LastEvaluatedKey, query.Count, query.ScannedCount}
	}
	if scanErr == nil {
		got["scan"] = []any{scan.Items, scan.LastEvaluatedKey, scan.Count, scan.ScannedCount}
	}
	return got
}

// attributes draws items as DynamoDB writes them, in JSON.
func attributes() *rapid.Generator[map[string]any] {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "customers/7", "\u2028<&>\"\\\u0000", "\U0001F600", strings.Repeat("long ", 2000)}))
	number := rapid.SampledFrom([]string{"0", "-1", "12.50", "1E+125", "12345678901234567890123456789012345678"})
	binary := rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 9), base64.StdEncoding.EncodeToString)
	leaf := rapid.OneOf(
		rapid.Map(text, func(v string) any { return map[string]any{"S": v} }),
		rapid.Map(number, func(v string) any { return map[string]any{"N": v} }),
		rapid.Map(rapid.Bool(), func(v bool) any { return map[string]any{"BOOL": v} }),
		rapid.Map(binary, func(v string) any { return map[string]any{"B": v} }),
		rapid.Just[any](map[string]any{"NULL": true}),
		rapid.Map(rapid.SliceOfN(text, 0, 3), func(v []string) any { return map[string]any{"SS": v} }),
		rapid.Map(rapid.SliceOfN(number, 0, 3), func(v []string) any { return map[string]any{"NS": v} }),
		rapid.Map(rapid.SliceOfN(binary, 0, 3), func(v []string) any { return map[string]any{"BS": v} }),
	)
	name := rapid.OneOf(rapid.SampledFrom([]string{"pk", "sk", "a", "a.b", "é", "S", "M", "Item", "Items"}), rapid.String())
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, leaf,
			rapid.Map(rapid.MapOfN(name, value(depth-1), 0, 4), func(v map[string]any) any { return map[string]any{"M": v} }),
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(v []any) any { return map[string]any{"L": v} }),
		)
	}
	return rapid.MapOfN(name, value(4), 0, 6)
}

func TestAnswersAreReadAsTheSDKReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(attributes(), 0, 4).Draw(t, "items")
		left := rapid.SliceOfN(attributes(), 0, 2).Draw(t, "left")
		answer := map[string]any{
			"Items": items, "Count": len(items), "ScannedCount": rapid.IntRange(0, 1<<31-1).Draw(t, "scanned"),
			"Responses": map[string]any{"t": items, "other": []any{}}, "UnprocessedKeys": map[string]any{"t": map[string]any{"Keys": left}},
			"ConsumedCapacity": nil, "Whatever": map[string]any{"Items": []any{1, true, "x"}},
		}
		if len(items) > 0 {
			answer["Item"], answer["LastEvaluatedKey"] = items[0], items[len(items)-1]
		} else if rapid.Bool().Draw(t, "null") {
			answer["LastEvaluatedKey"], answer["Item"] = nil, nil
		}
		body, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "unescaped") { // DynamoDB writes UTF-8 as it is
			body = []byte(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(body)))
		}
		header := http.Header{"X-Amz-Crc32": {fmt.Sprint(crc32.ChecksumIEEE(body))}}
		want := asked(t.Context(), answering(200, string(body), header, false))
		if got := asked(t.Context(), answering(200, string(body), header, true)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\nis read as %v\nand not as %v", body, got, want)
		}
		if !reflect.DeepEqual(want["errors"], make([]bool, 4)) {
			t.Fatalf("%s: %v", body, want["errors"])
		}
	})
}

// What cannot be read is an answer that was lost, whatever the request did.
func TestAnswersThatCannotBeRead(t *testing.T) {
	whole := `{"Item":{"a":{"M":{"b":{"L":[{"S":"x"},{"N":"1"}]}}}}}`
	cases := map[string]string{
		"another kind":  `[]`,
		"item":          `{"Item":[]}`,
		"value":         `{"Item":{"a":"x"}}`,
		"no type":       `{"Item":{"a":{}}}`,
		"string":        `{"Item":{"a":{"S":1}}}`,
		"number":        `{"Item":{"a":{"N":1}}}`,
		"truth":         `{"Item":{"a":{"BOOL":"true"}}}`,
		"binary":        `{"Item":{"a":{"B":"%%"}}}`,
		"list":          `{"Item":{"a":{"L":{}}}}`,
		"list's end":    `{"Item":{"a":{"L":[}}}`,
		"set":           `{"Item":{"a":{"SS":["a",1]}}}`,
		"no JSON":       `<html>`,
		"nothing":       ``,
		"only a number": `12`,
	}
	for i := range len(whole) {
		cases[fmt.Sprintf("cut after %d", i)] = whole[:i]
	}
	for name, body := range cases {
		_, err := answering(200, body, nil, true).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")})
		var cut *smithy.DeserializationError
		if !errors.As(err, &cut) || classify(err) != unclear {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := answering(200, whole, nil, true).GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")}); err != nil {
		t.Errorf("the whole answer: %v", err)
	}
	for _, body := range []string{`{"Count":"1"}`, `{"Count":1.5}`, `{"Count":99999999999}`} {
		if _, err := answering(200, body, nil, true).Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("t")}); classify(err) != unclear {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAnAnswerWithAnotherChecksum(t *testing.T) {
	client := answering(200, `{"Item":{"a":{"S":"x"}}}`, http.Header{"X-Amz-Crc32": {"1"}}, true)
	if _, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")}); classify(err) != unclear {
		t.Errorf("%v", err)
	}
}

// A type that is not known yet makes no other attribute unreadable.
func TestATypeOfTheFuture(t *testing.T) {
	client := answering(200, `{"Item":{"a":{"FUTURE":[1,"x",null]},"b":{"S":"y"}}}`, nil, true)
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: itemKey("a/b")})
	want := map[string]types.AttributeValue{"a": &types.UnknownUnionMember{Tag: "FUTURE"}, "b": &types.AttributeValueMemberS{Value: "y"}}
	if err != nil || !reflect.DeepEqual(out.Item, want) {
		t.Errorf("%v, %v", out, err)
	}
}

// Refusals come from the SDK as they always do.
func TestRefusalsOfReads(t *testing.T) {
	client := answering(400, `{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"no table"}`, nil, true)
	_, err := client.Query(t.Context(), &dynamodb.QueryInput{TableName: aws.String("t")})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) || missing.ErrorMessage() != "no table" {
		t.Errorf("%v", err)
	}
}

func BenchmarkReadPage(b *testing.B) {
	var items []string
	for i := range 1000 {
		items = append(items, fmt.Sprintf(`{"pk":{"S":"orders"},"sk":{"S":"/%d"},"data":{"M":{"customer":{"S":"customers/%d"},"freight":{"N":"12.5"},`+
			`"shipAddress":{"M":{"city":{"S":"Reims"},"country":{"S":"France"}}},"lines":{"L":[%s]}}}}`, i, i,
			strings.Join(slices.Repeat([]string{`{"M":{"product":{"S":"products/1"},"quantity":{"N":"3"},"price":{"N":"9.80"},"ok":{"BOOL":true}}}`}, 5), ",")))
	}
	body := `{"Count":1000,"Items":[` + strings.Join(items, ",") + `],"ScannedCount":1000}`
	for name, own := range map[string]bool{"own": true, "SDK": false} {
		client := answering(200, body, nil, own)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if out, err := client.Query(b.Context(), &dynamodb.QueryInput{TableName: aws.String("t")}); err != nil || len(out.Items) != 1000 {
					b.Fatal(err)
				}
			}
		})
	}
}
