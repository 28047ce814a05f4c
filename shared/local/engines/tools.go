package engines

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Tool is a program that has to be on the machine.
type Tool struct {
	Name string // what to look for on the PATH
	Need string // what it is needed for, and from which version on
	Get  string // how to get it
}

var (
	javaTool = Tool{"java", "Java 17 or later, runs OpenSearch and ElasticMQ",
		"a JDK: Debian/Ubuntu: apt-get install openjdk-17-jdk-headless · macOS: brew install openjdk@17 · or https://adoptium.net"}
	javacTool = Tool{"javac", "part of a JDK 17 or later, compiles the OpenSearch launcher once", javaTool.Get}
	mavenTool = Tool{"mvn", "Maven 3, fetches OpenSearch and ElasticMQ once",
		"Debian/Ubuntu: apt-get install maven · macOS: brew install maven · or https://maven.apache.org"}
	npmTool = Tool{"npm", "fetches dynoxide once",
		"Debian/Ubuntu: apt-get install npm · macOS: brew install node · or https://nodejs.org"}
)

// oldestJava is the first Java that the engines run on.
const oldestJava = 17

// MissingTools says which programs the machine lacks and how to get each.
type MissingTools struct {
	Tools []Tool
}

func (e *MissingTools) Error() string {
	var b strings.Builder
	b.WriteString("this machine lacks what the engines need:")
	for _, t := range e.Tools {
		fmt.Fprintf(&b, "\n  %-5s (%s)\n        %s", t.Name, t.Need, t.Get)
	}
	return b.String()
}

// find looks the tools up and answers with their paths by name.
// What is missing comes back, all of it, as *MissingTools.
func find(ctx context.Context, lookPath func(string) (string, error), tools []Tool) (map[string]string, error) {
	paths := map[string]string{}
	var missing []Tool
	for _, t := range tools {
		path, err := lookPath(t.Name)
		if err != nil {
			missing = append(missing, t)
			continue
		}
		if t.Name == javaTool.Name {
			if v, err := javaVersion(ctx, path); err != nil {
				t.Need += fmt.Sprintf("; %s does not run: %v", path, err)
				missing = append(missing, t)
				continue
			} else if v < oldestJava {
				t.Need += fmt.Sprintf("; %s is version %d", path, v)
				missing = append(missing, t)
				continue
			}
		}
		paths[t.Name] = path
	}
	if missing != nil {
		return nil, &MissingTools{Tools: missing}
	}
	return paths, nil
}

var versionText = regexp.MustCompile(`version "(?:1\.)?(\d+)`)

// javaVersion is the major version that a java program says it is.
func javaVersion(ctx context.Context, path string) (int, error) {
	out, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("no version in %q", strings.TrimSpace(string(out)))
	}
	return strconv.Atoi(string(m[1]))
}
