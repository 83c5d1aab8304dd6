# PostgreSQL and pgbench, four clients. A server of databases does not run as root.
# needs: postgresql
# links: 4
source "${0%/*}/common.bash"
cd "$FOLDER"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { "$@"; }
if [ "$(id -u)" = 0 ]; then
    chown -R postgres "$FOLDER" "${XDG_RUNTIME_DIR:-$FOLDER}"
    as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
fi
export HOME=$FOLDER
as "$bin/initdb" -D "$FOLDER/data" -A trust -U postgres >/dev/null
as $RUN "$bin/postgres" -D "$FOLDER/data" -h 127.0.0.1 -p "$PORT" -k "$FOLDER" -c fsync=off >log 2>&1 &
listening "$PORT"
for _ in $(seq 100); do
    as "$bin/psql" -h 127.0.0.1 -p "$PORT" -U postgres -c '' >/dev/null 2>&1 && break
    sleep 0.1
done
bench="$bin/pgbench -h 127.0.0.1 -p $PORT -U postgres"
as $RUN $bench -i -q -s 2 postgres 2>/dev/null
# These connections are long enough to move; one query may be over before.
as $RUN $bench -c 4 -t 500 postgres | grep -E "actually processed|failed"
as $RUN "$bin/psql" -h 127.0.0.1 -p "$PORT" -U postgres -At -c \
    "select md5(string_agg(i::text, ',')) from generate_series(1, 300000) i"
