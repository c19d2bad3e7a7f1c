#!/bin/sh
# slim.sh FOLDER    take out of an environment what nothing here runs
#
# Symbols for debuggers, tests of libraries, headers; services of AWS other than S3 and those that give it keys; and what
# of Arrow serves a network, as data are read through fsspec. tests/deploy/test_image_runs.py runs what is left.
set -eu
cd "$1"/lib/python3*/site-packages

find . -type d -name tests -prune -exec rm -rf {} +
find . -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyx' -o -name '*.a' \) -delete

if [ -d botocore ]; then # with the extra `s3`
  find botocore/data -mindepth 1 -maxdepth 1 -type d \
    ! -name s3 ! -name sts ! -name sso ! -name sso-oidc ! -name signin -exec rm -rf {} +
fi
if [ -d pyarrow ]; then # of three names of a library, others ask for the one with a number
  (cd pyarrow && rm -rf include src *flight* *s3* *gcsfs* *azurefs* *_cpp_tests* libarrow_*.so libarrow_*.so.*.*)
fi

# Where auditwheel has moved parts of a library about, it may not load once it is stripped: then it stays as it was.
find . -type f \( -name '*.so' -o -name '*.so.*' \) | while read -r library; do
  strip --strip-unneeded -o /tmp/stripped "$library"
  if ldd /tmp/stripped >/dev/null 2>&1; then cat /tmp/stripped >"$library"; fi
done
rm -f /tmp/stripped
