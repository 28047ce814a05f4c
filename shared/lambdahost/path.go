package lambdahost

import (
	"net/url"
	"strings"
)

// greedy is the parameter of a route that takes all that follows the API's own
// root, such as "ANY /{proxy+}".
const greedy = "{proxy+}"

// afterBase divides a decoded path into what precedes the API's own root, "" or
// "/v1/prod", and the rest. A gateway leaves stages and the base paths of custom
// domains in the path in some combinations and removes them in others, and says
// nowhere which; but it does say what its route matched, and what precedes that
// is not the API's. pattern is the path of the route, rest the value of its
// greedy parameter. ok is false where that tells nothing.
func afterBase(path, pattern, rest string) (base, own string, ok bool) {
	switch {
	case strings.HasSuffix(pattern, "/"+greedy):
		own = strings.TrimSuffix(pattern, greedy) + rest
	case strings.HasPrefix(pattern, "/") && !strings.Contains(pattern, "{"):
		own = pattern
	default:
		return "", path, false
	}
	// Gateways differ in whether the parameter is decoded and keeps a slash at
	// the end.
	for _, own := range []string{own, decodePath(own)} {
		trimmed := strings.TrimRight(own, "/")
		end := strings.TrimRight(path, "/")
		if base, found := strings.CutSuffix(end, trimmed); found && trimmed != "" {
			return base, path[len(base):], true
		}
	}
	return "", path, false
}

// decodePath decodes a path as a client encodes it. Emulators give it decoded:
// one with a character in it that an encoded path cannot have is taken as it is.
// A decoded path that looks encoded cannot be told apart; addressing a document
// by ?id= avoids the question.
func decodePath(path string) string {
	for i := range len(path) {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~!$&'()*+,;=:@/%", c) >= 0:
		default:
			return path
		}
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return path
	}
	return decoded
}
