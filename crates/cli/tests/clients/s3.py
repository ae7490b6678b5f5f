"""A request of the S3 protocol: s3.py METHOD URL KEY SECRET BODY [NAME:VALUE ...]; prints the answer, and exits 1 unless it is a success."""

import datetime
import hashlib
import hmac
import sys
import urllib.error
import urllib.parse
import urllib.request

method, url, key, secret, body, *further = sys.argv[1:]
body = body.encode()
address = urllib.parse.urlsplit(url)
now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
digest = hashlib.sha256(body).hexdigest()
headers = {"host": address.netloc, "x-amz-content-sha256": digest, "x-amz-date": now}
headers.update(line.split(":", 1) for line in further)
names = sorted(headers)
query = "&".join(sorted(part if "=" in part else part + "=" for part in address.query.split("&") if part))
canonical = "\n".join(
    [method, address.path, query, *[f"{name}:{headers[name]}" for name in names], "", ";".join(names), digest]
)
scope = f"{now[:8]}/us-east-1/s3/aws4_request"
signing = ("AWS4" + secret).encode()
for part in scope.split("/"):
    signing = hmac.new(signing, part.encode(), hashlib.sha256).digest()
text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
signature = hmac.new(signing, text.encode(), hashlib.sha256).hexdigest()
headers["authorization"] = (
    f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}"
)
request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    print(opener.open(request).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
    sys.exit(1)
