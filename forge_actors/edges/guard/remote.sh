# git calls this in place of every remote that it would push to.
refuse push "git push"
echo "git push is not held back for job $FORGE_JOB_ID" >&2
exit 1
