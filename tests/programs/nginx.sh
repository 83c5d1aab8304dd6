# curl gets files from nginx, small and big, again and again on one connection.
# needs: nginx-light curl
# links: 2
# bytes: 200000
# also: udp: sim:model sim:rtl
source "${0%/*}/common.bash"
cd "$FOLDER"
mkdir www
content "$(size 30000000 200000)" >www/big
content 612 >www/small
cat >conf <<END
user root; worker_processes $(size 2 1); daemon off; pid $FOLDER/pid; error_log $FOLDER/errors;
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
# Requests that are too fast are over before the connection moves.
for _ in $(seq "$(size 3 1)"); do
    $CLIENT curl -sS $(size "" "--rate 5/s") $url/small $url/small $url/small $url/small $url/small $url/big \
        $url/small $url/big >got
    cat www/{small,small,small,small,small,big,small,big} | cmp - got
done
$CLIENT curl -sS $url/nothing | grep -o '<title>.*</title>'
