package store

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// expression collects the parts of a request: every attribute name is written
// as #name, because many are reserved words, and values are named by the caller.
type expression struct {
	set    []string
	remove []string
	where  []string // joined by AND
	names  map[string]string
	values map[string]types.AttributeValue
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, values: map[string]types.AttributeValue{}}
}

// name gives the placeholder of an attribute.
func (x *expression) name(attr string) string {
	x.names["#"+attr] = attr
	return "#" + attr
}

// value gives the placeholder of a value.
func (x *expression) value(name string, v types.AttributeValue) string {
	x.values[":"+name] = v
	return ":" + name
}

// assign sets an attribute, its name serving as the value's.
func (x *expression) assign(attr string, v types.AttributeValue) {
	x.set = append(x.set, x.name(attr)+" = "+x.value(attr, v))
}

// assignAll sets several attributes, in a fixed order.
func (x *expression) assignAll(attrs map[string]types.AttributeValue) {
	for _, attr := range slices.Sorted(maps.Keys(attrs)) {
		x.assign(attr, attrs[attr])
	}
}

// assignOnce sets an attribute that is not there yet.
func (x *expression) assignOnce(attr string, v types.AttributeValue) {
	n := x.name(attr)
	x.set = append(x.set, n+" = if_not_exists("+n+", "+x.value(attr, v)+")")
}

func (x *expression) drop(attrs ...string) {
	for _, a := range attrs {
		x.remove = append(x.remove, x.name(a))
	}
}

func (x *expression) require(condition string) {
	x.where = append(x.where, "("+condition+")")
}

// update is the text of the update expression.
func (x *expression) update() *string {
	var parts []string
	if len(x.set) > 0 {
		parts = append(parts, "SET "+strings.Join(x.set, ", "))
	}
	if len(x.remove) > 0 {
		parts = append(parts, "REMOVE "+strings.Join(x.remove, ", "))
	}
	return textOrNone(strings.Join(parts, " "))
}

// condition is the text of the condition.
func (x *expression) condition() *string { return textOrNone(strings.Join(x.where, " AND ")) }

// valuesOrNone is nil instead of an empty map, which DynamoDB refuses.
func (x *expression) valuesOrNone() map[string]types.AttributeValue {
	if len(x.values) == 0 {
		return nil
	}
	return x.values
}

func textOrNone(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// projection asks for some attributes only.
func projection(attrs []string) (*string, map[string]string) {
	x := newExpression()
	placeholders := make([]string, len(attrs))
	for i, a := range attrs {
		placeholders[i] = x.name(a)
	}
	return textOrNone(strings.Join(placeholders, ", ")), x.names
}
