"""Makes a container in an account of Azure's storage, and a signature that gives a part of the rights to the account.

azure.py container ENDPOINT ACCOUNT KEY CONTAINER
azure.py signature ACCOUNT KEY RIGHTS [HOURS]
"""

import base64
import hashlib
import hmac
import sys
import urllib.parse
import urllib.request
from datetime import datetime, timedelta, timezone
from email.utils import formatdate

VERSION = "2021-12-02"


def signed(key, text):
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def container(endpoint, account, key, name):
    date = formatdate(usegmt=True)
    url = f"{endpoint}/{name}?restype=container"
    path = urllib.parse.urlsplit(url).path
    headers = f"x-ms-date:{date}\nx-ms-version:{VERSION}\n"
    text = "PUT" + "\n" * 12 + headers + f"/{account}{path}\nrestype:container"
    request = urllib.request.Request(url, data=b"", method="PUT")
    # As the library would add it by itself, and it would have to be signed.
    request.add_header("Content-Type", "")
    request.add_header("x-ms-date", date)
    request.add_header("x-ms-version", VERSION)
    request.add_header("Authorization", f"SharedKey {account}:{signed(key, text)}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    print(opener.open(request).status)


def signature(account, key, rights, hours="1"):
    moment = datetime.now(timezone.utc)
    start = (moment - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    expiry = (moment + timedelta(hours=int(hours))).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = [account, rights, "b", "sco", start, expiry, "", "https,http", VERSION, "", ""]
    query = {
        "sv": VERSION,
        "ss": "b",
        "srt": "sco",
        "sp": rights,
        "st": start,
        "se": expiry,
        "spr": "https,http",
        "sig": signed(key, "\n".join(fields)),
    }
    print(urllib.parse.urlencode(query))


{"container": container, "signature": signature}[sys.argv[1]](*sys.argv[2:])
