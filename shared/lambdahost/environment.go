package lambdahost

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// ReadConfig makes a configuration of the variables that the tags of Config name:
// get gives the value of a variable, "" where it is not set, and then the tag
// envDefault counts. The error names every variable that cannot be read.
//
// A function does this at every start, so it is done plainly: the libraries for
// it take longer than all else that a main does.
func ReadConfig(get func(variable string) string) (Config, error) {
	var c Config
	var wrong []error
	to := reflect.ValueOf(&c).Elem()
	for i := range to.NumField() {
		tag := to.Type().Field(i).Tag
		variable := tag.Get("env")
		text := get(variable)
		if text == "" {
			text = tag.Get("envDefault")
		}
		if text == "" {
			continue
		}
		if err := setField(to.Field(i).Addr().Interface(), text); err != nil {
			wrong = append(wrong, fmt.Errorf("%s is %q: %w", variable, text, err))
		}
	}
	return c, errors.Join(wrong...)
}

// setField reads text into what a field points to.
func setField(field any, text string) (err error) {
	switch field := field.(type) {
	case *string:
		*field = text
	case *int:
		if *field, err = strconv.Atoi(text); err != nil {
			return errors.New("it is a whole number")
		}
	case *bool:
		if *field, err = strconv.ParseBool(text); err != nil {
			return errors.New("it is true or false")
		}
	case *time.Duration:
		if *field, err = time.ParseDuration(text); err != nil {
			return errors.New("it is a duration such as 90s or 720h")
		}
	default:
		return fmt.Errorf("fields of type %T are not read", field)
	}
	return nil
}
