package lambdahost

import "testing"

func TestWhatPrecedesTheAPIsOwnPath(t *testing.T) {
	for _, c := range []struct{ path, pattern, rest, base, own string }{
		{"/docs/users/1", "/{proxy+}", "docs/users/1", "", "/docs/users/1"},
		{"/v1/docs/users/1", "/{proxy+}", "docs/users/1", "/v1", "/docs/users/1"},
		{"/a/b/docs/docs/1", "/{proxy+}", "docs/docs/1", "/a/b", "/docs/docs/1"},
		{"/docs/docs/users/1", "/{proxy+}", "docs/users/1", "/docs", "/docs/users/1"}, // a base path that looks like a route
		{"/v1/docs/users/", "/{proxy+}", "docs/users/", "/v1", "/docs/users/"},
		{"/v1/docs/users/", "/{proxy+}", "docs/users", "/v1", "/docs/users/"}, // the parameter without its slash
		{"/v1/docs/a b", "/{proxy+}", "docs/a%20b", "/v1", "/docs/a b"},       // the parameter still encoded
		{"/v1/query", "/query", "", "/v1", "/query"},
		{"/v1/collections/users/a", "/collections/{proxy+}", "users/a", "/v1", "/collections/users/a"},
		{"/query", "/query", "", "", "/query"},
		{"/v1/docs//users", "/{proxy+}", "docs//users", "/v1", "/docs//users"},
	} {
		base, own, ok := afterBase(c.path, c.pattern, c.rest)
		if !ok || base != c.base || own != c.own {
			t.Errorf("%+v: %q, %q, %v", c, base, own, ok)
		}
	}
	for _, c := range []struct{ path, pattern, rest string }{
		{"/v1/docs/users/1", "", ""},                   // the default route says nothing
		{"/v1/docs/users/1", "/{proxy+}", ""},          // nor does a parameter that is not there
		{"/v1/docs/users/1", "/docs/{id}", ""},         // a route of somebody else's
		{"/v1/docs/users/1", "/{proxy+}", "elsewhere"}, // contradictory
	} {
		if base, own, ok := afterBase(c.path, c.pattern, c.rest); ok || base != "" || own != c.path {
			t.Errorf("%+v: %q, %q, %v", c, base, own, ok)
		}
	}
}
