package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

// relations are what may stand between a field and a value, longer ones first
// where one begins like another.
var relations = []struct{ sign, operator string }{
	{"!=", "$ne"}, {">=", "$gte"}, {"<=", "$lte"}, {"=", "$eq"}, {">", "$gt"}, {"<", "$lt"},
}

// parseCondition reads a condition such as country=France or 'US Gross>=1000'.
// The field ends at the first sign of a relation.
func parseCondition(s string) (map[string]any, error) {
	at := strings.IndexAny(s, "!=<>")
	for at >= 0 && s[at] == '!' && !strings.HasPrefix(s[at:], "!=") {
		next := strings.IndexAny(s[at+1:], "!=<>")
		if next < 0 {
			at = -1
			break
		}
		at += 1 + next
	}
	if at < 0 {
		return nil, fmt.Errorf("%q is no condition such as country=France, 'US Gross>=1000' or name!=null", s)
	}
	for _, r := range relations {
		text, ok := strings.CutPrefix(s[at:], r.sign)
		if !ok {
			continue
		}
		field, err := conditionField(strings.TrimSpace(s[:at]))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		v, err := conditionValue(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		return map[string]any{field: map[string]any{r.operator: v}}, nil
	}
	return nil, fmt.Errorf("%q is no condition", s)
}

// conditionField checks the name of a field. One that begins with $ and is not
// the envelope's is a member of the document, for which there are pointers.
func conditionField(name string) (string, error) {
	if strings.HasPrefix(name, "$") && !filter.IsPseudo(name) {
		name = value.Pointer(name)
	}
	if _, err := filter.ParseField(name); err != nil {
		return "", errors.New(detailOf(err))
	}
	return name, nil
}

// conditionValue reads a value: JSON numbers, true, false, null and quoted
// strings are what they look like in JSON, all else is text.
func conditionValue(s string) (any, error) {
	trimmed := strings.TrimSpace(s)
	switch trimmed {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if n := len(trimmed); n >= 2 && trimmed[0] == '\'' && trimmed[n-1] == '\'' {
		return trimmed[1 : n-1], nil
	}
	if strings.HasPrefix(trimmed, `"`) {
		var text string
		if err := json.Unmarshal([]byte(trimmed), &text); err != nil {
			return nil, fmt.Errorf("the quoted text is no JSON string: %w", err)
		}
		return text, nil
	}
	if json.Valid([]byte(trimmed)) && (trimmed[0] == '-' || trimmed[0] >= '0' && trimmed[0] <= '9') {
		return json.Number(trimmed), nil
	}
	return s, nil
}

// buildFilter joins a filter in JSON and conditions: all must hold. Without
// either it is empty.
func buildFilter(text string, conditions []string) (json.RawMessage, error) {
	var parts []any
	if text != "" {
		// Read here so that a slip is a usage error that names the place.
		tree, err := value.Decode([]byte(text), value.MaxDepth)
		if err != nil {
			return nil, fmt.Errorf("--filter: %s", detailOf(err))
		}
		if _, ok := tree.(map[string]any); !ok {
			return nil, fmt.Errorf(`--filter is a JSON object such as {"country":"France"}`)
		}
		parts = append(parts, json.RawMessage(text))
	}
	for _, s := range conditions {
		part, err := parseCondition(s)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	switch len(parts) {
	case 0:
		return nil, nil
	case 1:
		return json.Marshal(parts[0])
	}
	return json.Marshal(map[string]any{"$and": parts})
}

// parseSortKeys reads keys such as orderDate:desc. Without an order it is asc;
// only what follows the last colon can be one, because names may have colons.
func parseSortKeys(texts []string) ([]map[string]string, error) {
	var keys []map[string]string
	for _, s := range texts {
		name, order := s, "asc"
		if i := strings.LastIndexByte(s, ':'); i >= 0 && (s[i+1:] == "asc" || s[i+1:] == "desc") {
			name, order = s[:i], s[i+1:]
		}
		if strings.HasPrefix(name, "$") && !filter.IsPseudo(name) {
			name = value.Pointer(name)
		}
		if _, err := filter.ParseField(name); err != nil {
			return nil, fmt.Errorf("--sort %q: %s", s, detailOf(err))
		}
		keys = append(keys, map[string]string{name: order})
	}
	return keys, nil
}

// detailOf is what an error of the documents' rules says to people, with its
// place.
func detailOf(err error) string {
	var e *doc.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if at, ok := e.Members["pointer"].(string); ok && at != "" {
		return e.Detail + " (at " + at + ")"
	}
	return e.Detail
}
