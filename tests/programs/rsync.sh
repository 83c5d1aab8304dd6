# rsync's daemon forks for each connection; a tree goes there and back.
# needs: rsync
# links: 2
# also: udp:
source "${0%/*}/common.bash"
cd "$FOLDER"
mkdir -p tree/a/b store back
content 5000000 >tree/big
split -b 30000 -a 3 tree/big tree/a/b/
cat >conf <<END
port = $PORT
address = 127.0.0.1
pid file = $FOLDER/pid
log file = $FOLDER/log
use chroot = no
uid = $(id -u)
gid = $(id -g)
[store]
path = $FOLDER/store
read only = no
END
$RUN rsync --daemon --no-detach --config=conf &
listening "$PORT"
$RUN rsync -a tree/ rsync://127.0.0.1:"$PORT"/store/
$RUN rsync -a rsync://127.0.0.1:"$PORT"/store/ back/
diff -r tree back && echo "the same tree"
