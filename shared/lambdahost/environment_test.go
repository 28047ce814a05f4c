package lambdahost_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/shared/lambdahost"
)

func TestWhatIsNotSetIsStandard(t *testing.T) {
	c, err := lambdahost.ReadConfig(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if !c.SearchSigned || c.SearchService != "es" || c.IndexReplicas != 1 || c.BulkBytes != 8<<20 || c.TombstoneLife != 720*time.Hour || c.LogLevel != "info" || c.DocumentsTable != "" {
		t.Errorf("%+v", c)
	}
}

// Every field has a variable of its own, and what the variable says is in it.
func TestEveryFieldIsRead(t *testing.T) {
	said := map[string]string{"string": "text", "int": "7", "bool": "false", "time.Duration": "90s"}
	kind := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[lambdahost.Config]()) {
		variable := f.Tag.Get("env")
		if !regexp.MustCompile(`^HOLDFAST_[A-Z_]+$`).MatchString(variable) || kind[variable] != "" {
			t.Errorf("%s has the variable %q", f.Name, variable)
		}
		kind[variable] = f.Type.String()
	}
	c, err := lambdahost.ReadConfig(func(variable string) string { return said[kind[variable]] })
	if err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[lambdahost.Config]().NumField() {
		got := reflect.ValueOf(c).Field(i).Interface()
		want := map[string]any{"string": "text", "int": 7, "bool": false, "time.Duration": 90 * time.Second}[reflect.TypeOf(got).String()]
		if got != want {
			t.Errorf("%s is %v, not %v", reflect.TypeFor[lambdahost.Config]().Field(i).Name, got, want)
		}
	}
}

func TestAllThatIsWrongIsNamed(t *testing.T) {
	said := map[string]string{"HOLDFAST_INDEX_REPLICAS": "one", "HOLDFAST_TOMBSTONE_LIFE": "a month", "HOLDFAST_OPENSEARCH_SIGNED": "maybe", "HOLDFAST_FEED_BUCKETS": "99999999999999999999"}
	_, err := lambdahost.ReadConfig(func(variable string) string { return said[variable] })
	for variable, text := range said {
		if err == nil || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
