# OpenSSH: a command, and a file by scp. Its server forks, replaces itself, and restricts its child.
# needs: openssh-server openssh-client
# links: 2
# bytes: 1000000
source "${0%/*}/common.bash"
cd "$FOLDER"
mkdir -p /run/sshd
content 20000000 >big
ssh-keygen -q -t ed25519 -N "" -f host
ssh-keygen -q -t ed25519 -N "" -f user
cp user.pub keys
cat >conf <<END
Port $PORT
ListenAddress 127.0.0.1
HostKey $FOLDER/host
AuthorizedKeysFile $FOLDER/keys
PidFile $FOLDER/pid
StrictModes no
UsePAM no
PermitRootLogin yes
Subsystem sftp internal-sftp
END
$RUN /usr/sbin/sshd -D -f "$FOLDER/conf" 2>errors &
listening "$PORT"
options="-i user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
$RUN ssh $options -p "$PORT" 127.0.0.1 'echo from there; sha256sum' <big
$RUN scp -q $options -P "$PORT" big 127.0.0.1:"$FOLDER/copy"
$RUN scp -q $options -P "$PORT" 127.0.0.1:"$FOLDER/copy" back
sha256sum <back
