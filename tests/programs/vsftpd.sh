# lftp with vsftpd, passive and active, up and down.
# needs: vsftpd lftp
# links: 2
# also: udp:
source "${0%/*}/common.bash"
cd "$FOLDER"
mkdir -p top/in empty
content 20000000 >top/big
chmod 755 "$FOLDER" top
chmod 777 top/in
cat >conf <<END
listen=YES
listen_address=127.0.0.1
listen_port=$PORT
background=NO
anonymous_enable=YES
anon_root=$FOLDER/top
anon_upload_enable=YES
write_enable=YES
anon_umask=022
run_as_launching_user=YES
seccomp_sandbox=NO
connect_from_port_20=NO
secure_chroot_dir=$FOLDER/empty
END
chmod 600 conf
$RUN vsftpd "$FOLDER/conf" &
listening "$PORT"
for mode in on off; do
    $RUN lftp -c "set ftp:passive-mode $mode; set net:max-retries 2; set net:timeout 10
        open ftp://127.0.0.1:$PORT; get big -o got-$mode; put got-$mode -o in/put-$mode"
    sha256sum <got-$mode
    sha256sum <top/in/put-$mode
done
