# For the job scripts beside it: what makes a job one that may end at any moment and go on later.

export PYTHONSAFEPATH=1  # jobs begin where the data may lie, and nothing there is to be imported

# resumable RUN COMMAND...
# Runs the command with --run RUN, or with --resume RUN where something was begun there already, until it ends; where
# it has ended well, there is nothing left to do. What it ends with is in $code.
# USR1, which SLURM sends before the time limit, ends it as TERM does, with what was counted kept in RUN; then the job
# is queued again. TERM (scancel, preemption) ends it too, and nothing more: SLURM itself requeues what it preempts.
resumable() {
    local run=$1 how=(--resume "$1" --overwrite) waiting=yes fit  # the model is the run's own, if it is there
    shift
    again= code=0
    case $(nfs-dask status "$run" --json 2> /dev/null) in
        *'"state": "finished"'*) echo "the run in $run has finished; name a new folder for a new one" && return ;;
        *'"state"'*) ;;
        *) how=(--run "$run") ;;
    esac
    "$@" "${how[@]}" &
    fit=$!
    trap 'again=yes waiting=yes; kill -TERM "$fit" || true' USR1
    trap 'waiting=yes; kill -TERM "$fit" || true' TERM
    while [ -n "$waiting" ]; do  # a signal ends the wait, and not the command
        waiting=
        wait "$fit" && code=0 || code=$?
    done
    trap '' USR1
    trap - TERM
}

# queue_again
# Puts this job back into the queue, with its number and its arguments, unless it has been there too often.
queue_again() {
    if [ "${SLURM_RESTART_COUNT:-0}" -ge "${MOST_RESTARTS:-100}" ]; then
        echo "not queued again after ${SLURM_RESTART_COUNT} times; is the time limit long enough to get anywhere?" >&2
        return 1
    fi
    echo "queued again, $(date --iso-8601=seconds)"
    scontrol requeue "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
}

# encrypted FOLDER
# Has Dask use the certificates in the folder, and nothing that is not encrypted. Not as options: Dask's scheduler does
# not take certificates together with --interface.
encrypted() {
    local role tls=DASK_DISTRIBUTED__COMM__TLS__
    export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true "${tls}CA_FILE=$1/ca.pem"
    for role in scheduler worker client; do
        export "$tls${role^^}__CERT=$1/$role.pem" "$tls${role^^}__KEY=$1/$role-key.pem"
    done
}
