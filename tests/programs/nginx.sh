# curl gets files from nginx, small and big, again and again on one connection.
# needs: nginx-light curl
# links: 2
source "${0%/*}/common.bash"
cd "$FOLDER"
mkdir www
content 30000000 >www/big
content 612 >www/small
cat >conf <<END
user root; worker_processes 2; daemon off; pid $FOLDER/pid; error_log $FOLDER/errors;
events { worker_connections 256; }
http {
    access_log off; sendfile on;
    client_body_temp_path $FOLDER/a; proxy_temp_path $FOLDER/b; fastcgi_temp_path $FOLDER/c;
    uwsgi_temp_path $FOLDER/d; scgi_temp_path $FOLDER/e;
    server { listen 127.0.0.1:$PORT; root $FOLDER/www; }
}
END
$RUN nginx -c "$FOLDER/conf" -e "$FOLDER/errors" &
listening "$PORT"
url=http://127.0.0.1:$PORT
for _ in 1 2 3; do
    $RUN curl -sS $url/small $url/small $url/small $url/small $url/small $url/big $url/small $url/big | sha256sum
done
$RUN curl -sS $url/nothing | grep -o '<title>.*</title>'
