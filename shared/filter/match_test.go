package filter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/doc"
	"holdfast/shared/filter"
	"holdfast/shared/value"
)

func decode(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Decode([]byte(text), 64)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func parse(t testing.TB, text string) filter.Expr {
	t.Helper()
	e, err := filter.Parse(decode(t, text), filter.ParseOptions{})
	if err != nil {
		t.Fatalf("filter %s: %v", text, err)
	}
	return e
}

func document(t testing.TB, text string) *doc.Document {
	t.Helper()
	return &doc.Document{ID: "things/1", Version: 1, Data: decode(t, text).(map[string]any)}
}

// A table is one filter with documents that it matches and that it does not.
type table struct{ filter, matches, misses string }

func check(t *testing.T, tables []table) {
	t.Helper()
	for _, table := range tables {
		e := parse(t, table.filter)
		for want, documents := range map[bool]string{true: table.matches, false: table.misses} {
			for text := range strings.SplitSeq(documents, " ; ") {
				if text = strings.TrimSpace(text); text == "" {
					continue
				}
				if got := filter.Match(e, document(t, text)); got != want {
					t.Errorf("filter %s on %s: %v, want %v", table.filter, text, got, want)
				}
			}
		}
	}
}

func TestEquality(t *testing.T) {
	check(t, []table{
		{`{}`, `{} ; {"a":1}`, ``},
		{`{"a":5}`, `{"a":5} ; {"a":5.0} ; {"a":50e-1} ; {"a":[5]} ; {"a":[1,5]} ; {"a":[[5],5]}`, `{} ; {"a":"5"} ; {"a":[[5]]} ; {"a":[]} ; {"a":{"a":5}} ; {"a":null} ; {"b":5}`},
		{`{"a":{"$eq":5}}`, `{"a":5} ; {"a":[1,5]}`, `{"a":6}`},
		{`{"a":"x"}`, `{"a":"x"} ; {"a":["y","x"]}`, `{"a":"X"} ; {"a":"xx"}`},
		{`{"a":true}`, `{"a":true} ; {"a":[false,true]}`, `{"a":1} ; {"a":"true"} ; {"a":false}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740993}`, `{"a":9007199254740992} ; {"a":9007199254740994}`},
		{`{"a":-0}`, `{"a":0}`, `{}`},
		{`{"a":[1,2]}`, `{"a":[1,2]} ; {"a":[[1,2]]} ; {"a":[3,[1,2]]} ; {"a":[1.0,2.0]}`, `{"a":[2,1]} ; {"a":[1,2,3]} ; {"a":1} ; {"a":[[[1,2]]]}`},
		{`{"a":[]}`, `{"a":[]} ; {"a":[[]]} ; {"a":[1,[]]}`, `{} ; {"a":null} ; {"a":{}} ; {"a":""} ; {"a":[[[]]]}`},
		{`{"a":{}}`, `{"a":{}} ; {"a":[{}]}`, `{} ; {"a":null} ; {"a":[]} ; {"a":{"x":1}}`},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"x":1,"y":2}} ; {"a":{"y":2,"x":1}} ; {"a":[0,{"y":2,"x":1}]}`, `{"a":{"x":1}} ; {"a":{"x":1,"y":2,"z":3}} ; {"a":{"x":[1],"y":2}}`},
		{`{"a":{"$eq":{"$x":1}}}`, `{"a":{"$x":1}}`, `{"a":1}`},
		{`{"a":{"x":{"$gt":1}}}`, `{"a":{"x":{"$gt":1}}}`, `{"a":{"x":2}}`},
		{`{"a":1,"b":2}`, `{"a":1,"b":2}`, `{"a":1} ; {"b":2} ; {"a":2,"b":1}`},
	})
}

func TestNullIsNullOrMissing(t *testing.T) {
	check(t, []table{
		{`{"a":null}`, `{"a":null} ; {} ; {"a":[null]} ; {"a":[1,null]}`, `{"a":0} ; {"a":""} ; {"a":false} ; {"a":[]} ; {"a":{}} ; {"a":[[null]]}`},
		{`{"a":{"$ne":null}}`, `{"a":0} ; {"a":[]} ; {"a":{}}`, `{"a":null} ; {} ; {"a":[1,null]}`},
		{
			`{"a.b":null}`,
			`{} ; {"a":null} ; {"a":4} ; {"a":{}} ; {"a":{"b":null}} ; {"a":[{"b":1},{}]} ; {"a":[{"b":null},{"b":3}]} ; {"a":[{"b":[null]}]}`,
			`{"a":{"b":"hi"}} ; {"a":[{"b":1},{"b":3}]} ; {"a":[]} ; {"a":[[]]} ; {"a":[1,"string",4]} ; {"a":[null,null]}`,
		},
		{`{"a":{"$gte":null}}`, `{"a":null} ; {} ; {"a":[null]}`, `{"a":0} ; {"a":[]}`},
		{`{"a":{"$lte":null}}`, `{"a":null} ; {}`, `{"a":0}`},
		{`{"a":{"$gt":null}}`, ``, `{"a":null} ; {} ; {"a":0} ; {"a":"x"}`},
		{`{"a":{"$lt":null}}`, ``, `{"a":null} ; {} ; {"a":0}`},
		{`{"a":{"$in":[null,1]}}`, `{} ; {"a":null} ; {"a":1} ; {"a":[2,null]}`, `{"a":2} ; {"a":[]}`},
		{`{"a":{"$eq":null,"$exists":true}}`, `{"a":null} ; {"a":[null]}`, `{} ; {"a":1}`},
	})
}

func TestExists(t *testing.T) {
	check(t, []table{
		{`{"a":{"$exists":true}}`, `{"a":1} ; {"a":null} ; {"a":[]} ; {"a":{}}`, `{} ; {"b":1}`},
		{`{"a":{"$exists":false}}`, `{} ; {"b":1}`, `{"a":null} ; {"a":[]}`},
		{`{"a.b":{"$exists":true}}`, `{"a":{"b":null}} ; {"a":[{},{"b":1}]}`, `{} ; {"a":1} ; {"a":[]} ; {"a":[{}]} ; {"a":[[{"b":1}]]}`},
		{`{"a.b":{"$exists":false}}`, `{} ; {"a":1} ; {"a":[]} ; {"a":[{}]}`, `{"a":[{},{"b":1}]}`},
		{`{"a.0":{"$exists":true}}`, `{"a":[null]} ; {"a":{"0":1}} ; {"a":[{"x":1}]}`, `{"a":[]} ; {"a":1}`},
	})
}

func TestRangesHoldWithinOneType(t *testing.T) {
	check(t, []table{
		{`{"a":{"$gt":5}}`, `{"a":5.00000000000000000000000000000000001} ; {"a":6} ; {"a":[1,6]}`, `{"a":5} ; {"a":"6"} ; {"a":true} ; {"a":null} ; {} ; {"a":[]} ; {"a":[[6]]} ; {"a":{"x":6}}`},
		{`{"a":{"$gte":9007199254740993}}`, `{"a":9007199254740993} ; {"a":1e125}`, `{"a":9007199254740992}`},
		{`{"a":{"$lt":0}}`, `{"a":-1e-130} ; {"a":-1}`, `{"a":0} ; {"a":1e-130} ; {"a":"-1"} ; {} ; {"a":false}`},
		{`{"a":{"$lte":1e-130}}`, `{"a":1e-130} ; {"a":0}`, `{"a":1.1e-130}`},
		{`{"a":{"$gt":"b"}}`, `{"a":"ba"} ; {"a":"c"} ; {"a":"😀"}`, `{"a":"b"} ; {"a":"B"} ; {"a":1} ; {"a":true}`},
		{`{"a":{"$lt":"` + "\uffff" + `"}}`, `{"a":""} ; {"a":"é"}`, `{"a":"😀"}`},
		{`{"a":{"$gte":false}}`, `{"a":false} ; {"a":true}`, `{"a":0} ; {"a":1} ; {"a":null} ; {}`},
		{`{"a":{"$gt":false}}`, `{"a":true}`, `{"a":false} ; {"a":1}`},
		{`{"a":{"$lt":true}}`, `{"a":false}`, `{"a":true} ; {}`},
		// Several operators on a path may be met by different elements.
		{`{"a":{"$gt":1,"$lt":5}}`, `{"a":3} ; {"a":[0,9]} ; {"a":[3]}`, `{"a":1} ; {"a":5} ; {"a":[0,1]} ; {"a":[5,9]}`},
	})
}

func TestInstants(t *testing.T) {
	check(t, []table{
		{
			`{"at":{"$gte":"2024-01-01T00:00:00Z"}}`,
			`{"at":"2024-01-01T00:00:00Z"} ; {"at":"2024-01-01T01:00:00+01:00"} ; {"at":"2023-12-31T23:00:00-02:00"} ; {"at":["x","2025-01-01T00:00:00.5Z"]}`,
			`{"at":"2024-01-01T00:00:00+00:01"} ; {"at":"2025-01-01"} ; {"at":"zzz"} ; {"at":"2025-01-01T00:00:60Z"} ; {"at":"2025-01-01t00:00:00z"} ; {"at":2025} ; {}`,
		},
		{`{"at":{"$gt":"2024-01-01T00:00:00.000000001Z"}}`, `{"at":"2024-01-01T00:00:00.000000002Z"}`, `{"at":"2024-01-01T00:00:00.000000001Z"} ; {"at":"2024-01-01T00:00:00Z"}`},
		{`{"at":{"$lt":"2024-01-01T00:00:00Z"}}`, `{"at":"2024-01-01T00:30:00+01:00"}`, `{"at":"2024-01-01T00:00:00.0Z"} ; {"at":""} ; {"at":"2023"}`},
		{`{"at":{"$lte":"2024-01-01T00:00:00Z"}}`, `{"at":"2024-01-01T00:00:00.000Z"}`, `{"at":"2024-01-01T00:00:00.1Z"}`},
		// Text that is no instant compares as text.
		{`{"at":{"$gte":"2024-01-01"}}`, `{"at":"2024-01-01"} ; {"at":"2024-01-01T00:00:00Z"} ; {"at":"x"}`, `{"at":"2023-12-31T00:00:00Z"}`},
		// Equality is of text.
		{`{"at":"2024-01-01T00:00:00Z"}`, `{"at":"2024-01-01T00:00:00Z"}`, `{"at":"2024-01-01T01:00:00+01:00"} ; {"at":"2024-01-01T00:00:00.0Z"}`},
		{`{"at":{"$in":["2024-01-01T00:00:00Z"]}}`, `{"at":"2024-01-01T00:00:00Z"}`, `{"at":"2024-01-01T01:00:00+01:00"}`},
	})
}

func TestNegationsAreOfTheWholeCondition(t *testing.T) {
	check(t, []table{
		{`{"a":{"$ne":5}}`, `{} ; {"a":6} ; {"a":[1,2]} ; {"a":"5"} ; {"a":[]}`, `{"a":5} ; {"a":[1,5]}`},
		{`{"a":{"$not":{"$gt":5}}}`, `{} ; {"a":5} ; {"a":"6"} ; {"a":[1,2]}`, `{"a":6} ; {"a":[1,6]}`},
		{`{"a":{"$not":{"$gt":1,"$lt":5}}}`, `{"a":1} ; {"a":[5,9]} ; {}`, `{"a":3} ; {"a":[0,9]}`},
		{`{"a":{"$not":{"$not":{"$gt":5}}}}`, `{"a":6}`, `{"a":5} ; {}`},
		{`{"a.b":{"$ne":1}}`, `{"a":[{"b":2},{}]} ; {"a":[]}`, `{"a":[{"b":2},{"b":1}]}`},
		{`{"a":{"$nin":[1,2]}}`, `{} ; {"a":3} ; {"a":[3]}`, `{"a":1} ; {"a":[3,2]}`},
		{`{"a":{"$nin":[null]}}`, `{"a":3}`, `{} ; {"a":null}`},
		{`{"$nor":[{"a":1},{"b":2}]}`, `{} ; {"a":2,"b":1}`, `{"a":1} ; {"b":2} ; {"a":1,"b":2}`},
		{`{"$nor":[{"a":1}]}`, `{} ; {"a":2}`, `{"a":1}`},
	})
}

func TestIn(t *testing.T) {
	check(t, []table{
		{`{"a":{"$in":[1,"x",true]}}`, `{"a":1.0} ; {"a":"x"} ; {"a":true} ; {"a":[0,"x"]}`, `{"a":"1"} ; {"a":2} ; {"a":false} ; {} ; {"a":[["x"]]}`},
		{`{"a":{"$in":[[1,2],{"b":1}]}}`, `{"a":[1,2]} ; {"a":[[1,2]]} ; {"a":{"b":1}} ; {"a":[{"b":1.0}]}`, `{"a":1} ; {"a":[2,1]} ; {"a":{"b":1,"c":1}}`},
		{`{"a":{"$in":[]}}`, ``, `{} ; {"a":1} ; {"a":[]}`},
		{`{"a":{"$nin":[]}}`, `{} ; {"a":1}`, ``},
	})
}

func TestLogic(t *testing.T) {
	check(t, []table{
		{`{"$and":[{"a":1},{"b":2}]}`, `{"a":1,"b":2}`, `{"a":1} ; {"b":2}`},
		{`{"$or":[{"a":1},{"b":2}]}`, `{"a":1} ; {"b":2}`, `{} ; {"a":2}`},
		{`{"$or":[{"a":1},{}]}`, `{}`, ``},
		{`{"$or":[{"a":1,"b":2},{"c":3}],"d":4}`, `{"a":1,"b":2,"d":4} ; {"c":3,"d":4}`, `{"a":1,"d":4} ; {"c":3}`},
		{`{"$and":[{"$or":[{"a":1},{"a":2}]},{"$nor":[{"b":1}]}]}`, `{"a":1} ; {"a":2,"b":2}`, `{"a":1,"b":1} ; {}`},
		{`{"$and":[{"a":1},{"a":2}]}`, `{"a":[1,2]}`, `{"a":1} ; {"a":2}`},
	})
}

func TestPathsThroughArrays(t *testing.T) {
	check(t, []table{
		{`{"a.b":5}`, `{"a":{"b":5}} ; {"a":[{"b":1},{"b":5}]} ; {"a":[{"b":[5]}]}`, `{"a":[{"b":1}]} ; {"a.b":5} ; {"a":[[{"b":5}]]}`},
		{`{"a[].b":5}`, `{"a":[{"b":5}]} ; {"a":{"b":5}}`, `{"a":[{"b":6}]}`},
		{`{"a.0":5}`, `{"a":[5,6]} ; {"a":{"0":5}} ; {"a":{"0":[5]}} ; {"a":[1,{"0":5}]}`, `{"a":[6,5]} ; {"a":5} ; {"a":[[5]]}`},
		{`{"a.0":[5]}`, `{"a":[[5]]}`, `{"a":[5]}`},
		{`{"a.0.0":5}`, `{"a":[[5]]}`, `{"a":[5]}`},
		{`{"a.1.b":{"$gt":2}}`, `{"a":[{"b":9},{"b":3}]} ; {"a":[{},[{"b":3}]]}`, `{"a":[{"b":9},{"b":1}]}`},
		{`{"/a.b/c":1}`, `{"a.b":{"c":1}} ; {"a.b":[{"c":1}]}`, `{"a":{"b":{"c":1}}}`},
		{`{"/$x":1}`, `{"$x":1}`, `{"x":1}`},
		{`{"/":1}`, `{"":1}`, `{}`},
	})
}

func TestTypes(t *testing.T) {
	check(t, []table{
		{`{"a":{"$type":"number"}}`, `{"a":1} ; {"a":["x",1]} ; {"a":1e100}`, `{} ; {"a":null} ; {"a":"1"} ; {"a":[[1]]} ; {"a":[]} ; {"a":{"b":1}}`},
		{`{"a":{"$type":"null"}}`, `{"a":null} ; {"a":[1,null]}`, `{} ; {"a":0} ; {"a":[]} ; {"a":[[null]]}`},
		{`{"a":{"$type":"array"}}`, `{"a":[]} ; {"a":[1]} ; {"a":[[1]]}`, `{} ; {"a":{}} ; {"a":1} ; {"a":"[]"}`},
		{`{"a":{"$type":["object","bool"]}}`, `{"a":{}} ; {"a":[{}]} ; {"a":false}`, `{"a":[]} ; {"a":"x"} ; {}`},
		{`{"a":{"$type":2}}`, `{"a":"x"}`, `{"a":2}`},
		{`{"a.b":{"$type":"string"}}`, `{"a":[{"b":1},{"b":["x"]}]}`, `{"a":[[{"b":"x"}]]} ; {"a":"x"}`},
		{`{"a.0":{"$type":"array"}}`, `{"a":[[1]]}`, `{"a":[1,[1]]}`},
		{`{"a.0":{"$type":"number"}}`, `{"a":[1]}`, `{"a":[[1]]}`},
		{`{"a":{"$not":{"$type":"number"}}}`, `{} ; {"a":"x"}`, `{"a":1} ; {"a":["x",1]}`},
	})
	names := map[string]string{"boolean": "true", "bool": "true", "double": "1", "int": "1.5", "long": "1", "decimal": "1"}
	for name, v := range names {
		check(t, []table{{`{"a":{"$type":"` + name + `"}}`, `{"a":` + v + `}`, `{"a":"x"}`}})
	}
}

func TestSizes(t *testing.T) {
	check(t, []table{
		{`{"a":{"$size":2}}`, `{"a":[1,2]} ; {"a":[[],null]}`, `{} ; {"a":[]} ; {"a":[1]} ; {"a":[[1,2]]} ; {"a":"xx"} ; {"a":{"0":1,"1":2}} ; {"a":2}`},
		{`{"a":{"$size":0}}`, `{"a":[]}`, `{} ; {"a":[[]]} ; {"a":{}} ; {"a":null}`},
		{`{"a.b":{"$size":1}}`, `{"a":{"b":[0]}} ; {"a":[{"b":[]},{"b":[0]}]}`, `{"a":[{"b":0}]} ; {"a":[[{"b":[0]}]]}`},
		{`{"a.0":{"$size":1}}`, `{"a":[[7]]}`, `{"a":[7]}`},
		{`{"a":{"$size":1e40}}`, ``, `{"a":[]} ; {}`},
		{`{"a":{"$not":{"$size":1}}}`, `{} ; {"a":[1,2]} ; {"a":1}`, `{"a":[1]}`},
	})
}

func TestAll(t *testing.T) {
	check(t, []table{
		{`{"a":{"$all":[1,2]}}`, `{"a":[2,3,1]} ; {"a":[1,2]}`, `{"a":[1]} ; {"a":1} ; {} ; {"a":[[1,2]]}`},
		{`{"a":{"$all":[1]}}`, `{"a":1} ; {"a":[1]}`, `{"a":[[1]]}`},
		{`{"a":{"$all":[[1,2]]}}`, `{"a":[1,2]} ; {"a":[[1,2],3]}`, `{"a":[1,2,3]}`},
		{`{"a":{"$all":[null]}}`, `{} ; {"a":null} ; {"a":[null]}`, `{"a":1}`},
		{`{"a":{"$all":[]}}`, ``, `{} ; {"a":[]} ; {"a":1}`},
		{`{"a":{"$not":{"$all":[]}}}`, `{} ; {"a":[]}`, ``},
		{`{"a.b":{"$all":[1,2]}}`, `{"a":[{"b":1},{"b":2}]} ; {"a":{"b":[1,2]}}`, `{"a":[{"b":1}]}`},
		{
			`{"a":{"$all":[{"$elemMatch":{"b":1,"c":1}},{"$elemMatch":{"b":2}}]}}`,
			`{"a":[{"b":2},{"b":1,"c":1}]} ; {"a":[{"b":[1,2],"c":1}]}`, `{"a":[{"b":1},{"b":2,"c":1}]} ; {"a":[{"b":1,"c":1}]}`,
		},
	})
}

func TestElemMatch(t *testing.T) {
	check(t, []table{
		// Of the operators, all are met by one element.
		{`{"a":{"$elemMatch":{"$gt":1,"$lt":5}}}`, `{"a":[3]} ; {"a":[0,9,3]}`, `{"a":[0,9]} ; {"a":3} ; {"a":[]} ; {} ; {"a":[[3]]} ; {"a":["3"]}`},
		{`{"a":{"$elemMatch":{"$eq":null}}}`, `{"a":[null]} ; {"a":[1,null]}`, `{} ; {"a":null} ; {"a":[]} ; {"a":[{}]} ; {"a":[[null]]}`},
		{`{"a":{"$elemMatch":{"$ne":1}}}`, `{"a":[1,2]} ; {"a":[[1]]} ; {"a":[null]}`, `{"a":[1]} ; {"a":[]} ; {} ; {"a":2}`},
		{`{"a":{"$elemMatch":{"$nin":[1,2]}}}`, `{"a":[1,3]}`, `{"a":[1,2]} ; {}`},
		{`{"a":{"$elemMatch":{"$not":{"$gt":1}}}}`, `{"a":[5,1]} ; {"a":["x"]}`, `{"a":[5]} ; {}`},
		{`{"a":{"$elemMatch":{"$eq":[1]}}}`, `{"a":[[1]]}`, `{"a":[1]} ; {"a":[[[1]]]}`},
		{`{"a":{"$elemMatch":{"$type":"array","$size":2}}}`, `{"a":[[1,2]]}`, `{"a":[1,2]} ; {"a":[[1]]}`},
		{`{"a":{"$elemMatch":{"$elemMatch":{"$gt":1}}}}`, `{"a":[[0,2]]}`, `{"a":[2]} ; {"a":[[0]]}`},
		{`{"a":{"$elemMatch":{"$exists":true}}}`, `{"a":[null]} ; {"a":[[]]}`, `{"a":[]} ; {"a":1}`},
		{`{"a":{"$elemMatch":{"$exists":false}}}`, ``, `{"a":[]} ; {} ; {"a":[1]}`},
		{`{"a":{"$elemMatch":{"$prefix":"x","$ne":"xy"}}}`, `{"a":["xy","xz"]}`, `{"a":["xy","z"]}`},
		{`{"a":{"$elemMatch":{"$all":[1,2]}}}`, ``, `{"a":[1,2]} ; {"a":[[1,2]]}`},
		// Of the members, all are met in one element.
		{`{"a":{"$elemMatch":{"b":1,"c":2}}}`, `{"a":[{"b":1,"c":2}]} ; {"a":[{},{"b":[0,1],"c":2}]}`, `{"a":[{"b":1},{"c":2}]} ; {"a":{"b":1,"c":2}} ; {} ; {"a":[[{"b":1,"c":2}]]}`},
		{`{"a":{"$elemMatch":{"b":{"$gt":1,"$lt":5}}}}`, `{"a":[{"b":3}]} ; {"a":[{"b":[0,9]}]}`, `{"a":[{"b":0},{"b":9}]}`},
		{`{"a":{"$elemMatch":{"b":null}}}`, `{"a":[{}]} ; {"a":[{"b":1},{"b":null}]} ; {"a":[[]]}`, `{"a":[{"b":1}]} ; {"a":[]} ; {"a":[1]} ; {}`},
		{`{"a":{"$elemMatch":{"b":{"$exists":false}}}}`, `{"a":[{"b":1},{"c":1}]}`, `{"a":[{"b":1}]} ; {"a":[5]}`},
		{`{"a":{"$elemMatch":{}}}`, `{"a":[{}]} ; {"a":[1,[]]}`, `{"a":[1]} ; {"a":[]} ; {"a":{}}`},
		{`{"a":{"$elemMatch":{"$or":[{"b":1},{"c":1}]}}}`, `{"a":[{"c":1}]}`, `{"a":[{"b":2}]}`},
		{`{"a":{"$elemMatch":{"$nor":[{"b":1},{"c":1}]}}}`, `{"a":[{"b":1},{}]}`, `{"a":[{"b":1},{"c":1}]}`},
		{`{"a":{"$elemMatch":{"b":{"$elemMatch":{"c":1,"d":1}}}}}`, `{"a":[{"b":[{"c":1,"d":1}]}]}`, `{"a":[{"b":[{"c":1}]},{"b":[{"d":1}]}]} ; {"a":{"b":[{"c":1,"d":1}]}}`},
		{`{"a.b":{"$elemMatch":{"c":1,"d":1}}}`, `{"a":{"b":[{"c":1,"d":1}]}} ; {"a":[{"b":[]},{"b":[{"c":1,"d":1}]}]}`, `{"a":[{"b":[{"c":1}]},{"b":[{"d":1}]}]} ; {"a":[{"b":{"c":1,"d":1}}]}`},
		// An array among the elements has its positions as members.
		{`{"a":{"$elemMatch":{"0":1,"1":2}}}`, `{"a":[[1,2]]} ; {"a":[{"0":1,"1":2}]}`, `{"a":[1,2]} ; {"a":[[2,1]]}`},
		{`{"a":{"$elemMatch":{"0.b":1}}}`, `{"a":[[{"b":1}]]}`, `{"a":[{"b":1}]}`},
		{`{"a.0":{"$elemMatch":{"$gt":1}}}`, `{"a":[[2]]}`, `{"a":[2]}`},
		{`{"a":{"$not":{"$elemMatch":{"b":1}}}}`, `{} ; {"a":[{"b":2}]} ; {"a":{"b":1}}`, `{"a":[{"b":1}]}`},
		{`{"a":{"$elemMatch":{"/$id":1}}}`, `{"a":[{"$id":1}]}`, `{"a":[{"id":1}]}`},
	})
}

func TestPrefixes(t *testing.T) {
	check(t, []table{
		{`{"a":{"$prefix":"ab"}}`, `{"a":"ab"} ; {"a":"abc"} ; {"a":["x","abc"]}`, `{"a":"a"} ; {"a":"Ab"} ; {"a":"xab"} ; {} ; {"a":null} ; {"a":[["ab"]]} ; {"a":{"ab":1}}`},
		{`{"a":{"$prefix":""}}`, `{"a":""} ; {"a":"x"}`, `{} ; {"a":1} ; {"a":[]}`},
		{`{"a":{"$prefix":"1"}}`, `{"a":"12"}`, `{"a":12}`},
		{`{"a":{"$prefix":"*"}}`, `{"a":"*x"}`, `{"a":"x"}`},
		{`{"a":{"$prefix":"é"}}`, `{"a":"élan"}`, `{"a":"elan"}`},
		{`{"a":{"$not":{"$prefix":"a"}}}`, `{"a":"b"} ; {} ; {"a":1}`, `{"a":"a"} ; {"a":["b","a"]}`},
		{`{"$id":{"$prefix":"things/"}}`, `{}`, ``},
		{`{"$root":{"$prefix":"other"}}`, ``, `{}`},
	})
}

func TestTexts(t *testing.T) {
	check := func(filterText, matches, misses string) {
		t.Helper()
		e, err := filter.Parse(decode(t, filterText), filter.ParseOptions{Text: []string{"t", "a.t"}})
		if err != nil {
			t.Fatal(err)
		}
		for want, documents := range map[bool]string{true: matches, false: misses} {
			for text := range strings.SplitSeq(documents, " ; ") {
				if text != "" && filter.Match(e, document(t, text)) != want {
					t.Errorf("filter %s on %s: not %v", filterText, text, want)
				}
			}
		}
	}
	check(`{"t":{"$text":"the MATRIX"}}`, `{"t":"The Matrix"} ; {"t":"matrix, the"} ; {"t":["The one","Matrix"]} ; {"t":"(the)-matrix?"}`, `{"t":"The Matrices"} ; {"t":"Matrix"} ; {} ; {"t":null} ; {"t":[["the matrix"]]} ; {"t":{"t":"the matrix"}}`)
	check(`{"t":{"$text":"300"}}`, `{"t":300} ; {"t":"300: Rise of an Empire"}`, `{"t":3000} ; {"t":"3000"}`)
	check(`{"t":{"$text":"東京"}}`, `{"t":"東京タワー"} ; {"t":"京 東"}`, `{"t":"東"}`)
	check(`{"t":{"$not":{"$text":"x"}}}`, `{} ; {"t":"y"}`, `{"t":"X"}`)
	check(`{"a":{"$elemMatch":{"t":{"$text":"x y"}}}}`, `{"a":[{"t":"y x"}]} ; {"a":[{"t":["x","y"]}]}`, `{"a":[{"t":"x"},{"t":"y"}]}`)
	check(`{"t":{"$elemMatch":{"$text":"x y"}}}`, `{"t":["x y"]}`, `{"t":["x","y"]} ; {"t":"x y"}`)
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		" - ":                     "",
		"one, Two;THREE":          "one two three",
		"don't":                   "don t",
		"a1b2 3.5":                "a1b2 3 5",
		"Größe ΟΔΟΣ οδος οδοσ":    "größe οδοσ οδοσ οδοσ",
		"\u212aelvin ſ":           "kelvin s",
		"e\u0301te\u0301 x\u0301": "e\u0301te\u0301 x\u0301",
		"\u0301x":                 "x",
		"ab東京cd":                  "ab 東 京 cd",
		"İ":                       "i",
		"x\ufffdy":                "x y",
	} {
		var words []string
		for w := range filter.Words(text) {
			words = append(words, w)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for w := range filter.Words("one two") {
		if w != "one" {
			t.Error("goes on after it was stopped")
		}
		break
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		for w := range filter.Words(text) {
			again := slices.Collect(filter.Words(w))
			if len(again) != 1 || again[0] != w {
				t.Fatalf("the word %q has the words %q", w, again)
			}
		}
	})
}

func TestPseudoFields(t *testing.T) {
	d := &doc.Document{
		ID: "users/1/orders/7", Version: 1796029203123456, Data: map[string]any{"$id": "other"},
		CreatedAt: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), UpdatedAt: time.Date(2024, 6, 1, 12, 0, 0, 500_000_000, time.UTC),
	}
	for text, want := range map[string]bool{
		`{"$id":"users/1/orders/7"}`: true,
		`{"$id":"other"}`:            false,
		`{"/$id":"other"}`:           true,
		`{"$id":{"$gt":"users/1/orders/6","$lt":"users/1/orders/8"}}`:            true,
		`{"$id":{"$gt":"2024-01-01T00:00:00Z"}}`:                                 true,
		`{"$id":{"$in":["a","users/1/orders/7"]}}`:                               true,
		`{"$id":{"$nin":["a","users/1/orders/7"]}}`:                              false,
		`{"$id":{"$exists":true}}`:                                               true,
		`{"$id":{"$exists":false}}`:                                              false,
		`{"$root":"users/1"}`:                                                    true,
		`{"$root":{"$ne":"users/1"}}`:                                            false,
		`{"$root":{"$in":["users/1","users/2"]}}`:                                true,
		`{"$version":1796029203123456}`:                                          true,
		`{"$version":{"$gt":1796029203123455.5}}`:                                true,
		`{"$version":{"$lte":1796029203123455}}`:                                 false,
		`{"$version":{"$in":[1,1796029203123456]}}`:                              true,
		`{"$createdAt":"2024-01-01T00:00:00Z"}`:                                  true,
		`{"$createdAt":"2024-01-01T01:00:00.000+01:00"}`:                         true,
		`{"$createdAt":{"$ne":"2024-01-01T00:00:00Z"}}`:                          false,
		`{"$createdAt":{"$in":["2020-01-01T00:00:00Z","2024-01-01T00:00:00Z"]}}`: true,
		`{"$createdAt":{"$in":["2020-01-01T00:00:00Z"]}}`:                        false,
		`{"$updatedAt":{"$gt":"2024-06-01T12:00:00.499999999Z"}}`:                true,
		`{"$updatedAt":{"$lt":"2024-06-01T14:00:00.5+02:00"}}`:                   false,
		`{"$updatedAt":{"$in":["2024-06-01T12:00:00.5Z"]}}`:                      true,
		`{"$updatedAt":{"$not":{"$gte":"2025-01-01T00:00:00Z"}}}`:                true,
	} {
		if got := filter.Match(parse(t, text), d); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestAnInMadeWithoutNewInMatchesTheSame(t *testing.T) {
	field, err := filter.ParseField("a")
	if err != nil {
		t.Fatal(err)
	}
	in := filter.In{Field: field, Values: []any{json.Number("1")}}
	if !filter.Match(in, document(t, `{"a":1}`)) || filter.Match(in, document(t, `{"a":2}`)) {
		t.Error("an In without its look-up matches wrongly")
	}
}

func TestMatchIsSafeWithoutData(t *testing.T) {
	tombstone := &doc.Document{ID: "things/1", Version: 1, Deleted: true}
	if !filter.Match(parse(t, `{"a":null,"b.c":{"$ne":1}}`), tombstone) {
		t.Error("nothing is not missing")
	}
}

// anyValue draws values that often are equal, related or at the same path.
func anyValue(levels int) *rapid.Generator[any] {
	scalar := rapid.SampledFrom([]any{
		nil, true, false, json.Number("0"), json.Number("1"), json.Number("2"), json.Number("1.5"), json.Number("9007199254740993"), json.Number("9007199254740992"),
		"", "a", "b", "1", "2024-01-01T00:00:00Z", "2024-01-01T01:00:00+01:00", "2023-01-01T00:00:00Z",
	})
	if levels == 0 {
		return scalar
	}
	below := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(levels - 1) })
	return rapid.OneOf(
		scalar,
		rapid.Map(rapid.SliceOfN(below, 0, 3), func(a []any) any { return append([]any{}, a...) }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "0", "1"}), below, 0, 3), func(m map[string]any) any { return m }),
	)
}

func anyDocument() *rapid.Generator[*doc.Document] {
	return rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), anyValue(3), 0, 2), func(m map[string]any) *doc.Document {
		return &doc.Document{ID: "things/1", Version: 1, Data: m}
	})
}

// anyFilter draws a filter as a client would send it.
func anyFilter(levels int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		if levels > 0 && rapid.Bool().Draw(t, "logic") {
			parts := rapid.SliceOfN(anyFilter(levels-1), 1, 3).Draw(t, "parts")
			return map[string]any{rapid.SampledFrom([]string{"$and", "$or", "$nor"}).Draw(t, "connective"): append([]any{}, parts...)}
		}
		return map[string]any{anyPath().Draw(t, "path"): anyCondition().Draw(t, "condition")}
	})
}

func anyPath() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "b", "a.a", "a.b", "a.0", "a.1", "a.0.b", "a.b.a", "/a/0/0"})
}

func anyCondition() *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch op := rapid.SampledFrom([]string{"", "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not", "$type", "$size", "$all", "$prefix", "$elemMatch"}).Draw(t, "operator"); op {
		case "":
			return anyValue(2).Draw(t, "value")
		case "$eq", "$ne":
			return map[string]any{op: anyValue(2).Draw(t, "value")}
		case "$in", "$nin":
			return map[string]any{op: append([]any{}, rapid.SliceOfN(anyValue(2), 0, 4).Draw(t, "values")...)}
		case "$exists":
			return map[string]any{op: rapid.Bool().Draw(t, "want")}
		case "$type":
			return map[string]any{op: rapid.SampledFrom([]any{"null", "bool", "number", "string", "object", "array"}).Draw(t, "kind")}
		case "$size":
			return map[string]any{op: rapid.SampledFrom([]any{json.Number("0"), json.Number("1"), json.Number("2")}).Draw(t, "length")}
		case "$all":
			return map[string]any{op: append([]any{}, rapid.SliceOfN(anyValue(1), 0, 2).Draw(t, "values")...)}
		case "$prefix":
			return map[string]any{op: rapid.SampledFrom([]any{"", "a", "20"}).Draw(t, "text")}
		case "$elemMatch":
			if rapid.Bool().Draw(t, "about values") {
				return map[string]any{op: map[string]any{"$gt": anyValue(0).Draw(t, "low"), "$ne": anyValue(1).Draw(t, "not")}}
			}
			return map[string]any{op: map[string]any{"a": anyValue(1).Draw(t, "a"), "b": anyValue(0).Draw(t, "b")}}
		case "$not":
			return map[string]any{op: map[string]any{"$gt": anyValue(0).Draw(t, "value")}}
		default:
			return map[string]any{op: anyValue(0).Draw(t, "value")}
		}
	})
}

// matches parses and matches in one step.
func matches(t *rapid.T, f any, d *doc.Document) bool {
	e, err := filter.Parse(f, filter.ParseOptions{})
	if err != nil {
		t.Fatalf("%s: %v", value.Append(nil, f), err)
	}
	return filter.Match(e, d)
}

func list(parts ...any) []any { return parts }

func TestLawsOfLogic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyDocument().Draw(t, "document")
		x, y := anyFilter(2).Draw(t, "x"), anyFilter(2).Draw(t, "y")
		not := func(f any) any { return map[string]any{"$nor": list(f)} }
		and := map[string]any{"$and": list(x, y)}
		or := map[string]any{"$or": list(x, y)}
		if matches(t, not(and), d) != matches(t, map[string]any{"$or": list(not(x), not(y))}, d) {
			t.Fatal("not (x and y) is not (not x) or (not y)")
		}
		if matches(t, not(or), d) != matches(t, map[string]any{"$and": list(not(x), not(y))}, d) {
			t.Fatal("not (x or y) is not (not x) and (not y)")
		}
		if matches(t, map[string]any{"$nor": list(x, y)}, d) != matches(t, not(or), d) {
			t.Fatal("$nor is not the opposite of $or")
		}
		if matches(t, not(not(x)), d) != matches(t, x, d) {
			t.Fatal("not not x is not x")
		}
		if matches(t, and, d) && !matches(t, x, d) {
			t.Fatal("a further clause widened the filter")
		}
		if matches(t, x, d) && !matches(t, or, d) {
			t.Fatal("an alternative narrowed the filter")
		}
	})
}

func TestLawsOfOperators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, path := anyDocument().Draw(t, "document"), anyPath().Draw(t, "path")
		on := func(op string, v any) bool { return matches(t, map[string]any{path: map[string]any{op: v}}, d) }
		v := anyValue(2).Draw(t, "value")
		if on("$ne", v) == on("$eq", v) {
			t.Fatal("$ne is not the opposite of $eq")
		}
		values := append([]any{}, rapid.SliceOfN(anyValue(2), 0, 4).Draw(t, "values")...)
		one := false
		for _, v := range values {
			one = one || on("$eq", v)
		}
		if on("$in", values) != one {
			t.Fatal("$in is not the alternative of its values")
		}
		if on("$nin", values) == one {
			t.Fatal("$nin is not the opposite of $in")
		}
		s := anyValue(0).Draw(t, "scalar")
		if on("$gte", s) != (on("$gt", s) || on("$gte", s) && !on("$gt", s)) || on("$gt", s) && !on("$gte", s) || on("$lt", s) && !on("$lte", s) {
			t.Fatal("the strict relation is wider")
		}
		if matches(t, map[string]any{path: map[string]any{"$not": map[string]any{"$lt": s}}}, d) == on("$lt", s) {
			t.Fatal("$not is not the opposite")
		}
		if on("$exists", true) == on("$exists", false) {
			t.Fatal("$exists is true of both")
		}
		if v != nil && on("$eq", v) && !on("$exists", true) {
			t.Fatal("something equal does not exist")
		}
		both := map[string]any{path: map[string]any{"$gt": s, "$ne": v}}
		if matches(t, both, d) != (on("$gt", s) && on("$ne", v)) {
			t.Fatal("two operators are not the conjunction of each")
		}
	})
}

// naive is equality written a second time, as MongoDB's manual puts it, for
// paths of one name.
func naive(data map[string]any, name string, want any) bool {
	v, there := data[name]
	if !there {
		return want == nil
	}
	if value.Equal(v, want) {
		return true
	}
	elements, _ := v.([]any)
	for _, element := range elements {
		if value.Equal(element, want) {
			return true
		}
	}
	return false
}

func TestEqualityAgreesWithItsDescription(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, v := anyDocument().Draw(t, "document"), anyValue(2).Draw(t, "value")
		if got, want := matches(t, map[string]any{"a": v}, d), naive(d.Data, "a", v); got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	d := document(b, `{"customer":"customers/ALFKI","orderDate":"1997-08-25T00:00:00Z","freight":29.46,"details":[{"quantity":3},{"quantity":21}],"shipAddress":{"country":"Germany"}}`)
	for _, text := range []string{
		`{"shipAddress.country":"Germany"}`,
		`{"details.quantity":{"$gte":20}}`,
		`{"orderDate":{"$gte":"1997-01-01T00:00:00Z"}}`,
		fmt.Sprintf(`{"customer":{"$in":["customers/ALFKI"%s]}}`, strings.Repeat(`,"x"`, 500)),
	} {
		e := parse(b, text)
		b.Run(text[:20], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !filter.Match(e, d) {
					b.Fatal("no match")
				}
			}
		})
	}
}
