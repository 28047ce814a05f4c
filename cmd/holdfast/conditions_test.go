package main

import (
	"encoding/json"
	"testing"

	"holdfast/shared/filter"
	"holdfast/shared/value"
)

func TestConditions(t *testing.T) {
	for text, want := range map[string]string{
		`country=France`:                  `{"country":{"$eq":"France"}}`,
		`Major Genre=Drama`:               `{"Major Genre":{"$eq":"Drama"}}`,
		`US Gross>1000000`:                `{"US Gross":{"$gt":1000000}}`,
		`a>=1.5`:                          `{"a":{"$gte":1.5}}`,
		`a<=-2e3`:                         `{"a":{"$lte":-2e3}}`,
		`a<0`:                             `{"a":{"$lt":0}}`,
		`a!=null`:                         `{"a":{"$ne":null}}`,
		`a=true`:                          `{"a":{"$eq":true}}`,
		`a = false`:                       `{"a":{"$eq":false}}`,
		`zip="82520"`:                     `{"zip":{"$eq":"82520"}}`,
		`zip='82520'`:                     `{"zip":{"$eq":"82520"}}`,
		`zip=082520`:                      `{"zip":{"$eq":"082520"}}`,
		`n=12345678901234567890.5`:        `{"n":{"$eq":12345678901234567890.5}}`,
		`a=+5`:                            `{"a":{"$eq":"+5"}}`,
		`a=`:                              `{"a":{"$eq":""}}`,
		`a=b=c`:                           `{"a":{"$eq":"b=c"}}`,
		`a=b!=c<d`:                        `{"a":{"$eq":"b!=c<d"}}`,
		`a="x\"y"`:                        `{"a":{"$eq":"x\"y"}}`,
		`hey!you=1`:                       `{"hey!you":{"$eq":1}}`,
		`a.b.0.c=x`:                       `{"a.b.0.c":{"$eq":"x"}}`,
		`/a.b/c=x`:                        `{"/a.b/c":{"$eq":"x"}}`,
		`$id=movies/3`:                    `{"$id":{"$eq":"movies/3"}}`,
		`$where=1`:                        `{"/$where":{"$eq":1}}`,
		`$updatedAt>2026-01-01T00:00:00Z`: `{"$updatedAt":{"$gt":"2026-01-01T00:00:00Z"}}`,
		`a= x `:                           `{"a":{"$eq":" x "}}`,
		`a=NaN`:                           `{"a":{"$eq":"NaN"}}`,
		`Größe>=1`:                        `{"Größe":{"$gte":1}}`,
	} {
		got, err := parseCondition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		b, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		x, errX := value.Decode(b, 10)
		y, errY := value.Decode([]byte(want), 10)
		if errX != nil || errY != nil || !value.Equal(x, y) {
			t.Errorf("%s is %s, want %s", text, b, want)
		}
		if _, err := filter.Parse(x, filter.ParseOptions{}); err != nil {
			t.Errorf("%s: the server would refuse %s: %v", text, b, err)
		}
	}
	for _, bad := range []string{"", "country", "=x", "a!b", "a..b=1", `a="x`, `a="x"y`, "a[0]=1", ">5"} {
		if got, err := parseCondition(bad); err == nil {
			t.Errorf("%q is taken as %v", bad, got)
		}
	}
}

func TestFiltersAndConditionsAreJoined(t *testing.T) {
	for _, c := range []struct {
		filter     string
		conditions []string
		want       string
	}{
		{"", nil, ""},
		{`{"a":1}`, nil, `{"a":1}`},
		{"", []string{"a=1"}, `{"a":{"$eq":1}}`},
		{`{"a":{"$in":[1,2]}}`, []string{"a>1", "a<5"}, `{"$and":[{"a":{"$in":[1,2]}},{"a":{"$gt":1}},{"a":{"$lt":5}}]}`},
	} {
		got, err := buildFilter(c.filter, c.conditions)
		if err != nil || string(got) != c.want && !sameJSON(got, c.want) {
			t.Errorf("%+v gives %s, %v", c, got, err)
		}
	}
	for _, bad := range []string{"{", "[]", "1", `{"a":1,"a":2}`} {
		if _, err := buildFilter(bad, nil); err == nil {
			t.Errorf("the filter %s is taken", bad)
		}
	}
}

func sameJSON(got []byte, want string) bool {
	x, errX := value.Decode(got, 20)
	y, errY := value.Decode([]byte(want), 20)
	return errX == nil && errY == nil && value.Equal(x, y)
}

func TestSortKeys(t *testing.T) {
	got, err := parseSortKeys([]string{"a", "b:desc", "c:d", "e:f:asc", "$id:desc", "$odd"})
	text, _ := json.Marshal(got)
	if want := `[{"a":"asc"},{"b":"desc"},{"c:d":"asc"},{"e:f":"asc"},{"$id":"desc"},{"/$odd":"asc"}]`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	for _, bad := range []string{"", ":desc", "a..b"} {
		if _, err := parseSortKeys([]string{bad}); err == nil {
			t.Errorf("the key %q is taken", bad)
		}
	}
}
