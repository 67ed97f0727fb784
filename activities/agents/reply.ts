/**
 * Takes the text of a chat's reply node as it comes, for those who read along. A fault here never makes the node
 * fail, and a slow reader never delays it.
 */
export type ReplyWriter = {
  write(text: string): void
  /** Resolves when what was written is on its way to readers of other processes. */
  flush(): Promise<void>
}
