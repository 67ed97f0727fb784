/**
 * Where the reply node of a chat writes its text as it comes, for those who read along. Nothing that happens there
 * makes the node fail, and nobody who reads slowly holds it up.
 */
export type ReplyWriter = {
  write(text: string): void
  /** Resolves when what was written is on its way to readers of other processes. */
  flush(): Promise<void>
}
