package store

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/go-json-experiment/json/jsontext"
)

// readItems lets answers that hold items be read by this package, in one pass.
// The SDK makes a tree of all of an answer first and items out of that, which
// takes several times the memory and the processor time; pages are megabytes.
//
// What the store does not ask for, such as the consumed capacity, is passed over.
// Refusals are left to the SDK.
func readItems(stack *middleware.Stack) error {
	read, ok := itemAnswers[stack.ID()]
	if !ok {
		return nil
	}
	own := &itemReader{read: read}
	sdk, err := stack.Deserialize.Swap("OperationDeserializer", own)
	own.sdk = sdk
	return err
}

// itemAnswers are the operations that answer with items.
var itemAnswers = map[string]func(*answerReader) (any, error){
	"GetItem":      func(r *answerReader) (any, error) { return r.getItem() },
	"BatchGetItem": func(r *answerReader) (any, error) { return r.batchGetItem() },
	"Query":        func(r *answerReader) (any, error) { return r.query() },
	"Scan":         func(r *answerReader) (any, error) { return r.scan() },
}

// itemReader stands in the place of the SDK's reader of an operation's answer.
type itemReader struct {
	read func(*answerReader) (any, error)
	sdk  middleware.DeserializeMiddleware
}

func (r *itemReader) ID() string { return r.sdk.ID() }

func (r *itemReader) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	middleware.DeserializeOutput, middleware.Metadata, error,
) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if err != nil {
		return out, metadata, err
	}
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return r.sdk.HandleDeserialize(ctx, in, middleware.DeserializeHandlerFunc(func(context.Context, middleware.DeserializeInput) (
			middleware.DeserializeOutput, middleware.Metadata, error,
		) {
			return out, metadata, nil
		}))
	}
	out.Result, err = r.read(newAnswerReader(resp.Body))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	}
	// Closing tells also that the answer is not the one that its checksum is of,
	// and that of every answer without one.
	if closeErr := resp.Body.Close(); err == nil && resp.Header.Get("X-Amz-Crc32") != "" {
		err = closeErr
	}
	if err != nil {
		return out, metadata, &smithy.DeserializationError{Err: fmt.Errorf("read the answer: %w", err)}
	}
	return out, metadata, nil
}

// answerReader reads what DynamoDB answers.
type answerReader struct {
	tokens *jsontext.Decoder
	names  map[string]string // of attributes, since items have the same ones
}

func newAnswerReader(r io.Reader) *answerReader {
	return &answerReader{
		tokens: jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		names:  map[string]string{},
	}
}

func (r *answerReader) getItem() (*dynamodb.GetItemOutput, error) {
	out := &dynamodb.GetItemOutput{}
	return out, r.object(func(name string) (err error) {
		if name != "Item" {
			return r.tokens.SkipValue()
		}
		out.Item, err = r.item()
		return err
	})
}

func (r *answerReader) query() (*dynamodb.QueryOutput, error) {
	out := &dynamodb.QueryOutput{}
	return out, r.page(&out.Items, &out.LastEvaluatedKey, &out.Count, &out.ScannedCount)
}

func (r *answerReader) scan() (*dynamodb.ScanOutput, error) {
	out := &dynamodb.ScanOutput{}
	return out, r.page(&out.Items, &out.LastEvaluatedKey, &out.Count, &out.ScannedCount)
}

func (r *answerReader) page(items *[]map[string]types.AttributeValue, last *map[string]types.AttributeValue, count, scanned *int32) error {
	return r.object(func(name string) (err error) {
		switch name {
		case "Items":
			*items, err = r.items()
		case "LastEvaluatedKey":
			*last, err = r.item()
		case "Count":
			*count, err = r.number()
		case "ScannedCount":
			*scanned, err = r.number()
		default:
			err = r.tokens.SkipValue()
		}
		return err
	})
}

// batchGetItem reads, of what was left out, the keys alone: the rest of it is
// what was asked.
func (r *answerReader) batchGetItem() (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{}
	return out, r.object(func(name string) error {
		switch name {
		case "Responses":
			out.Responses = map[string][]map[string]types.AttributeValue{}
			return r.object(func(table string) (err error) {
				out.Responses[table], err = r.items()
				return err
			})
		case "UnprocessedKeys":
			out.UnprocessedKeys = map[string]types.KeysAndAttributes{}
			return r.object(func(table string) error {
				var left types.KeysAndAttributes
				err := r.object(func(name string) (err error) {
					if name != "Keys" {
						return r.tokens.SkipValue()
					}
					left.Keys, err = r.items()
					return err
				})
				out.UnprocessedKeys[table] = left
				return err
			})
		}
		return r.tokens.SkipValue()
	})
}

// object reads an object, each of its members by member. Null is none.
func (r *answerReader) object(member func(name string) error) error {
	if null, err := r.open('{'); null || err != nil {
		return err
	}
	for r.tokens.PeekKind() == '"' {
		name, err := r.name()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	return r.end('}')
}

// list reads an array, each of its elements by element. Null is none.
func (r *answerReader) list(element func() error) error {
	if null, err := r.open('['); null || err != nil {
		return err
	}
	for {
		switch r.tokens.PeekKind() {
		case ']':
			return r.end(']')
		case 0: // what is wrong is said when it is read
			return r.end(']')
		}
		if err := element(); err != nil {
			return err
		}
	}
}

func (r *answerReader) open(kind jsontext.Kind) (null bool, err error) {
	token, err := r.tokens.ReadToken()
	if err != nil {
		return false, err
	}
	if token.Kind() != kind && token.Kind() != 'n' {
		return false, unexpected(token)
	}
	return token.Kind() == 'n', nil
}

func (r *answerReader) end(kind jsontext.Kind) error {
	token, err := r.tokens.ReadToken()
	if err == nil && token.Kind() != kind {
		err = unexpected(token)
	}
	return err
}

func unexpected(token jsontext.Token) error {
	return fmt.Errorf("%q is not what DynamoDB answers there", token.Kind())
}

// name reads the name of a member.
func (r *answerReader) name() (string, error) {
	raw, err := r.tokens.ReadValue()
	if err != nil {
		return "", err
	}
	if known, ok := r.names[string(raw)]; ok {
		return known, nil
	}
	plain, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", err
	}
	name := string(plain)
	r.names[string(raw)] = name
	return name, nil
}

func (r *answerReader) text() (string, error) {
	token, err := r.tokens.ReadToken()
	if err != nil {
		return "", err
	}
	if token.Kind() != '"' {
		return "", unexpected(token)
	}
	return token.String(), nil
}

func (r *answerReader) truth() (bool, error) {
	token, err := r.tokens.ReadToken()
	if err != nil {
		return false, err
	}
	if token.Kind() != 't' && token.Kind() != 'f' {
		return false, unexpected(token)
	}
	return token.Bool(), nil
}

func (r *answerReader) number() (int32, error) {
	token, err := r.tokens.ReadToken()
	if err != nil {
		return 0, err
	}
	if token.Kind() != '0' {
		return 0, unexpected(token)
	}
	n, err := strconv.ParseInt(token.String(), 10, 32)
	return int32(n), err
}

func (r *answerReader) binary() ([]byte, error) {
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

func (r *answerReader) items() ([]map[string]types.AttributeValue, error) {
	items := []map[string]types.AttributeValue{}
	err := r.list(func() error {
		item, err := r.item()
		items = append(items, item)
		return err
	})
	return items, err
}

// item reads the attributes of an item, or of a map in one. Null is none.
func (r *answerReader) item() (map[string]types.AttributeValue, error) {
	if r.tokens.PeekKind() == 'n' {
		return nil, r.tokens.SkipValue()
	}
	item := map[string]types.AttributeValue{}
	return item, r.object(func(name string) (err error) {
		item[name], err = r.attribute()
		return err
	})
}

// attribute reads a value: an object with one member, named after the type.
func (r *answerReader) attribute() (types.AttributeValue, error) {
	var v types.AttributeValue
	err := r.object(func(tag string) (err error) {
		v, err = r.tagged(tag)
		return err
	})
	if err == nil && v == nil {
		err = errors.New("a value of an attribute has no type")
	}
	return v, err
}

func (r *answerReader) tagged(tag string) (types.AttributeValue, error) {
	switch tag {
	case "S":
		text, err := r.text()
		return &types.AttributeValueMemberS{Value: text}, err
	case "N":
		text, err := r.text()
		return &types.AttributeValueMemberN{Value: text}, err
	case "BOOL":
		truth, err := r.truth()
		return &types.AttributeValueMemberBOOL{Value: truth}, err
	case "NULL":
		truth, err := r.truth()
		return &types.AttributeValueMemberNULL{Value: truth}, err
	case "B":
		bytes, err := r.binary()
		return &types.AttributeValueMemberB{Value: bytes}, err
	case "M":
		members, err := r.item()
		return &types.AttributeValueMemberM{Value: members}, err
	case "L":
		elements, err := all(r, r.attribute)
		return &types.AttributeValueMemberL{Value: elements}, err
	case "SS":
		texts, err := all(r, r.text)
		return &types.AttributeValueMemberSS{Value: texts}, err
	case "NS":
		texts, err := all(r, r.text)
		return &types.AttributeValueMemberNS{Value: texts}, err
	case "BS":
		binaries, err := all(r, r.binary)
		return &types.AttributeValueMemberBS{Value: binaries}, err
	}
	return &types.UnknownUnionMember{Tag: tag}, r.tokens.SkipValue()
}

// all reads an array of what read reads.
func all[T any](r *answerReader, read func() (T, error)) ([]T, error) {
	list := []T{}
	return list, r.list(func() error {
		v, err := read()
		list = append(list, v)
		return err
	})
}
