// Package versitygw pins an object store that speaks S3: the server that mirrors are tested against.
package versitygw
